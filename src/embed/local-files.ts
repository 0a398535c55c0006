// Written by packages/embed-local/scripts/build.mjs.

/** The version of dexctx-embed-local that belongs to this dex. */
export const LOCAL_VERSION = "0.1.0"

/** The package's files and their SHA-512 checksums. */
export const LOCAL_FILES: Readonly<Record<string, string>> = {
  "dist/index.js": "QBp//DLXWSVT5MMgUYR9qy5t+WkF5aJWX9bWoF8Gytst3ef2dM4pooc1rtY45QYPY9a9qaC3446eqsyHhPuh9A==",
  "dist/model.onnx": "KvQn5hnN7U5C/z5wtZmlxhvkVpSXVbJI+dKrRD4f4fSj7+A/4uJm2AKxGKpyLg7QNCAhW8ZpBb6jW8T6IObtRg==",
  "dist/ort-wasm-simd-threaded.mjs":
    "IboQh0Pwb+2CvUlaEljlBVLJWlFfGUCxCquU6kjywgW+qj9+DZtJYSU9pueGY4A4vT2W5rQ8Zt4CNNIDL8Kf1g==",
  "dist/ort-wasm-simd-threaded.wasm":
    "Gt7e1iIDIZ/PXEhM/OVleqWHVom0kEI/hs8cod0crXcV9jDGM39B23HuQnlOOgDOC3x4k5pxIgtdgzaL9up3MA==",
  "dist/ort.mjs": "KZmk34ebjnd3RlIrwNA9LcoCfH3AnLmJRNPPLxKaj3B9YqPxyr8ChrAyKk5DfMMFzT2iYQWgZ5cA+3kY4C2cyg==",
  "dist/vocab.txt": "9R8Gquf1gKiJmPb38ktSSVyNPSif29whIxwF86iWV4MHTZXBe4GRhvmmO2IigOigURBaIWHNDRU/pX23oKup+Q==",
  "package.json": "pOnxI15X0+JmhpAf49a3ANkoBBdIAHCWFc40+n7YDFd0Jcpvw/bj+lj1fXXufTlgW6gv2rsj2dmqpIFcYLbuXA==",
}
