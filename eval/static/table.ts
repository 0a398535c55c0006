import { readFileSync, writeFileSync } from "node:fs"
import { termsOf } from "./terms.ts"

/**
 * A vector of bytes for each word. A text's vector is the sum of its words' vectors; a word's weight is the length of its vector.
 */
export type Table = { name: string; dims: number; words: string[]; scales: Float32Array; bytes: Int8Array }

/** `vectors`: one row per word. */
export function toTable(name: string, dims: number, words: string[], vectors: Float32Array): Table {
  const scales = new Float32Array(words.length)
  const bytes = new Int8Array(words.length * dims)
  for (let w = 0; w < words.length; w++) {
    const row = vectors.subarray(w * dims, (w + 1) * dims)
    let most = 1e-12
    for (const value of row) most = Math.max(most, Math.abs(value))
    scales[w] = most / 127
    for (let d = 0; d < dims; d++) bytes[w * dims + d] = Math.round((row[d]! / most) * 127)
  }
  return { name, dims, words, scales, bytes }
}

/** One line of JSON, then the scales as 32-bit floats, then the bytes. */
export function writeTable(path: string, { name, dims, words, scales, bytes }: Table): void {
  const head = Buffer.from(`${JSON.stringify({ name, dims, words })}\n`)
  writeFileSync(path, Buffer.concat([head, new Uint8Array(scales.buffer), new Uint8Array(bytes.buffer)]))
}

export function readTable(path: string): Table {
  const file = readFileSync(path)
  const end = file.indexOf(10) + 1
  const { name, dims, words } = JSON.parse(file.toString("utf8", 0, end)) as Pick<Table, "name" | "dims" | "words">
  const body = file.buffer.slice(file.byteOffset + end, file.byteOffset + file.length)
  const scales = new Float32Array(body, 0, words.length)
  return { name, dims, words, scales, bytes: new Int8Array(body, words.length * 4, words.length * dims) }
}

/** Makes vectors of texts; not of length 1. A text without any known word gets a meaningless direction. */
export function openTable({ dims, words, scales, bytes }: Table): (text: string) => Float32Array {
  const places = new Map(words.map((word, place) => [word, place]))
  return (text) => {
    const times = new Map<number, number>()
    for (const term of termsOf(text)) {
      const place = places.get(term)
      if (place !== undefined) times.set(place, (times.get(place) ?? 0) + 1)
    }
    const vector = new Float32Array(dims)
    for (const [place, count] of times) {
      const weight = scales[place]! * (1 + Math.log(count))
      for (let d = 0; d < dims; d++) vector[d]! += weight * bytes[place * dims + d]!
    }
    if (vector.every((value) => value === 0)) vector[0] = 1
    return vector
  }
}
