import { Buffer } from "node:buffer"

// Tokens in base64: a Kubernetes secret, a registry's login, a cookie. What a mark becomes there depends only on how many
// bytes stand before it, counted in threes; so each mark has three forms, and they are searched for like marks.

export type Base64Form = {
  form: string
  /** How many bytes of the first group of three stand before the mark. */
  before: 0 | 1 | 2
}

/** A mark's forms, as far as the bytes around it do not change them. */
export function base64Forms(mark: string): Base64Form[] {
  return ([0, 1, 2] as const).map((before) => {
    const whole = Buffer.from("\0".repeat(before) + mark).toString("base64")
    const from = Math.ceil((before * 8) / 6)
    return { form: whole.slice(from, Math.floor(((before + mark.length) * 8) / 6)), before }
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
