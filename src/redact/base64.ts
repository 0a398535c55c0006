import { Buffer } from "node:buffer"

// Tokens in base64: a Kubernetes secret, a registry's login, a cookie. What a mark becomes there depends only on how many
// bytes stand before it, counted in threes; so each mark has three forms, and they are searched for like marks.

export type Base64Form = {
  form: string
  /** How many bytes of the first group of three stand before the mark. */
  before: 0 | 1 | 2
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

/** A mark's forms, as far as the bytes around it do not change them. By hand: hooks load this, and Buffer takes 3 ms. */
export function base64Forms(mark: string): Base64Form[] {
  return ([0, 1, 2] as const).map((before) => {
    let form = ""
    let bits = 0
    let held = 0
    // The sextet in which the mark begins is not its own.
    let skipped = (6 - ((before * 8) % 6)) % 6
    for (let i = 0; i < mark.length; i++) {
      bits = ((bits << 8) | mark.charCodeAt(i)) & 0xffff
      held += 8
      if (skipped > 0) {
        held -= skipped
        skipped = 0
      }
      for (; held >= 6; held -= 6) form += ALPHABET[(bits >> (held - 6)) & 63]
    }
    return { form, before }
  })
}

const RUN = /[A-Za-z0-9+/_-]{1,4096}/y

/** What stands in base64 from a form on, and where its group of characters begins and its run ends. */
export function decodeAt(text: string, at: number, before: 0 | 1 | 2): { start: number; end: number; plain: string } {
  const start = at - Math.ceil((before * 8) / 6)
  RUN.lastIndex = at
  const end = RUN.test(text) ? RUN.lastIndex : at
  if (start < 0) return { start: at, end, plain: "" }
  return { start, end, plain: Buffer.from(text.slice(start, end), "base64").toString("latin1").slice(before) }
}
