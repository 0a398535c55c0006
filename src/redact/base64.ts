import { Buffer } from "node:buffer"

// Finds tokens in base64: a Kubernetes secret, a registry's login, a cookie. The base64 form of a mark depends only on the number
// of bytes before it, modulo three. So each mark has three forms, and dex searches for these forms too.

export type Base64Form = {
  form: string
  /** The number of bytes before the mark in its first group of three bytes. */
  before: 0 | 1 | 2
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/**
 * The base64 forms of a mark, without the characters that depend on the surrounding bytes. Does not use Buffer, which takes 3 ms
 * to load, because hooks load this module.
 */
export function base64Forms(mark: string): Base64Form[] {
  return ([0, 1, 2] as const).map((before) => {
    let form = ""
    let bits = 0
    let bitCount = 0
    // The first sextet of the mark also contains bits of the preceding bytes.
    let skipped = (6 - ((before * 8) % 6)) % 6
    for (let i = 0; i < mark.length; i++) {
      bits = ((bits << 8) | mark.charCodeAt(i)) & 0xffff
      bitCount += 8
      if (skipped > 0) {
        bitCount -= skipped
        skipped = 0
      }
      for (; bitCount >= 6; bitCount -= 6) form += ALPHABET[(bits >> (bitCount - 6)) & 63]
    }
    return { form, before }
  })
}

const BASE64_RUN = /[A-Za-z0-9+/_-]{1,4096}/y

/** Decodes the base64 around a form, from the form's group of four characters to the end of the run. */
export function decodeAt(text: string, at: number, before: 0 | 1 | 2): { start: number; end: number; plain: string } {
  const start = at - Math.ceil((before * 8) / 6)
  BASE64_RUN.lastIndex = at
  const end = BASE64_RUN.test(text) ? BASE64_RUN.lastIndex : at
  if (start < 0) return { start: at, end, plain: "" }
  return { start, end, plain: Buffer.from(text.slice(start, end), "base64").toString("latin1").slice(before) }
}
