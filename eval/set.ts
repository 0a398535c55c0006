import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** A piece of text that can be the answer. */
export type Doc = { id: string; text: string; role?: "user" | "assistant" }

/** What becomes one conversation of the history. A question may be asked inside one project only. */
export type Chat = { id: string; project: string; docs: Doc[] }

export type Half = "tune" | "held"

export type Question = {
  id: string
  text: string
  category: string
  half: Half
  /** Ids of what answers it: of docs or of chats, as the set's unit says. */
  gold: string[]
  /** Only this project is searched. */
  project?: string
}

export type EvalSet = {
  name: string
  /** What is ranked. */
  unit: "message" | "conversation"
  /** What the set is made of: chats that are written as transcripts, or transcripts that are there already. */
  chats: Chat[] | { transcripts: string }
  questions: Question[]
  /** Categories that are shown, but not counted in the whole. */
  apart?: string[]
}

const SHARED = fileURLToPath(new URL("../../shared/", import.meta.url))

/** The public sets are other people's data: read where they are, never copied here. */
export const BENCH_DIR = process.env.DEX_BENCH_DIR ?? `${SHARED}bench`
export const CORPUS_DIR = process.env.DEX_CORPUS_DIR ?? `${SHARED}corpus`

export class Absent extends Error {}

export function requirePath(path: string): string {
  if (!existsSync(path)) throw new Absent(`${path} is not there`)
  return path
}

export function halfOf(id: string): Half {
  return createHash("sha256").update(id).digest()[0]! % 2 === 0 ? "tune" : "held"
}
