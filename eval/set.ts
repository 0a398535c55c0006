import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** A piece of text that can be the answer. */
export type Doc = { id: string; text: string; role?: "user" | "assistant" }

/** Becomes one conversation of the history. A question may be limited to one project. */
export type Chat = { id: string; project: string; docs: Doc[] }

export type Half = "tune" | "held"

export type Question = {
  id: string
  text: string
  category: string
  half: Half
  /** Ids of the answers: of docs or of chats, depending on the set's unit. */
  gold: string[]
  /** Only this project is searched. */
  project?: string
  /** When the question arose. */
  date?: string
}

export type EvalSet = {
  name: string
  /** What is ranked. */
  unit: "message" | "conversation"
  /** The content of the set: chats that are written as transcripts, or existing transcripts. */
  chats: Chat[] | { transcripts: string }
  questions: Question[]
  /** Categories that are shown, but not counted in the total. */
  apart?: string[]
}

const SHARED = fileURLToPath(new URL("../../shared/", import.meta.url))

/** The public sets are other people's data: they are read in place, never copied here. */
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
