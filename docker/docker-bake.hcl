# The list of variants. `make image` fills in the variables; `docker buildx bake -f docker/docker-bake.hcl --print` shows
# what they lead to.
variable "BASE_DIGEST" {}
variable "BASE_IMAGE" {}
variable "BASE_NAME" {}
variable "CREATED" {}
variable "REVISION" {}
variable "SGLANG" {}
variable "SOURCE_DATE_EPOCH" { default = "0" }
variable "VERSION" {}

group "default" {
  targets = ["triton", "flashinfer"]
}

target "base" {
  context    = "."
  dockerfile = "docker/Dockerfile"
  args = {
    BASE_DIGEST       = BASE_DIGEST
    BASE_IMAGE        = BASE_IMAGE
    BASE_NAME         = BASE_NAME
    CREATED           = CREATED
    REVISION          = REVISION
    SGLANG            = SGLANG
    SOURCE_DATE_EPOCH = SOURCE_DATE_EPOCH
    VERSION           = VERSION
  }
}

target "triton" {
  inherits = ["base"]
  args     = { VARIANT = "triton" }
  # The default variant is also what `docker run speckit` means.
  tags = ["speckit:triton", "speckit:latest"]
}

target "flashinfer" {
  inherits = ["base"]
  args     = { VARIANT = "flashinfer" }
  tags     = ["speckit:flashinfer"]
}
