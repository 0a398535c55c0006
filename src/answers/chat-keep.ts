import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { codeOf, messageOf } from "../core/error.ts"
import { redactText } from "../redact/redact.ts"
import type { Dex } from "../tools/context.ts"
import type { Turn } from "./chat.run.ts"

/** A chat that is stored in a folder. Every line is written immediately, so a crash loses at most the answer in progress. */
export type StoredChat = {
  /** The chat's id. Undefined before the first question, and if the chat cannot be stored. */
  id(): string | undefined
  folder(): string | undefined
  question(text: string): void
  answer(turn: Turn): void
  cleared(): void
  /** The error that prevents the chat from being stored, if there is one. */
  problem(): string | undefined
}

export type ChatDetails = { model?: string; collections?: string[]; useCase: () => string | undefined }

/** Stores a chat. Writes nothing before the first question. A write error does not end the chat. */
export function storeChat(dex: Dex, details: ChatDetails): StoredChat {
  const root = join(dex.home.dir, "chat-sessions")
  let id: string | undefined
  let problem: string | undefined
  let questions = 0
  let title = ""
  let startedAt = 0

  const attempt = (write: () => void) => {
    if (problem !== undefined) return
    try {
      write()
    } catch (error) {
      problem = messageOf(error)
    }
  }
  const appendRecord = (record: { type: string; [field: string]: unknown }) => {
    const line = JSON.stringify({ ...record, at: new Date(dex.now()).toISOString() })
    appendFileSync(join(root, id!, "messages.jsonl"), `${line}\n`, { mode: 0o600 })
  }
  const writeMetadata = () => {
    const now = dex.now()
    const file = join(root, id!, "metadata.json")
    const metadata = {
      id,
      title,
      cwd: dex.cwd,
      started_at: new Date(startedAt).toISOString(),
      updated_at: new Date(now).toISOString(),
      duration_ms: now - startedAt,
      questions,
      ...detailFields(details),
      dex_version: dex.version,
    }
    try {
      writeFileSync(`${file}.new`, `${JSON.stringify(metadata, undefined, 2)}\n`, { mode: 0o600 })
      renameSync(`${file}.new`, file)
    } finally {
      rmSync(`${file}.new`, { force: true })
    }
  }
  const beginChat = (text: string) => {
    startedAt = dex.now()
    title = text.replace(/\s+/g, " ").trim().slice(0, 120)
    id = makeChatFolder(root, startedAt)
    appendRecord({ type: "chat", id, cwd: dex.cwd, dex_version: dex.version, ...detailFields(details) })
  }

  return {
    id: () => (problem === undefined ? id : undefined),
    folder: () => (problem === undefined && id !== undefined ? join(root, id) : undefined),
    problem: () => problem,
    question: (question) =>
      attempt(() => {
        const text = redactText(question)
        if (id === undefined) beginChat(text)
        questions++
        appendRecord({ type: "question", n: questions, text, use_case: redactOptional(details.useCase()) })
        writeMetadata()
      }),
    answer: ({ answer, sources, confidence, extractive, partial, stopped, note, used }) =>
      attempt(() => {
        const isEmpty = stopped && sources.length === 0
        appendRecord({
          type: "answer",
          n: questions,
          text: isEmpty ? "" : redactText(answer),
          sources,
          confidence,
          extractive,
          partial,
          stopped,
          note: redactOptional(note),
          used,
        })
        writeMetadata()
      }),
    cleared: () =>
      attempt(() => {
        if (id !== undefined) appendRecord({ type: "clear" })
      }),
  }
}

function detailFields({ model, collections, useCase }: ChatDetails) {
  return { model, collections, use_case: redactOptional(useCase()) }
}

function redactOptional(text: string | undefined): string | undefined {
  return text === undefined ? undefined : redactText(text)
}

const MAX_TRIES = 100

/** Creates a chat's folder, named after the start time. A second chat in the same millisecond gets a number. */
export function makeChatFolder(root: string, at: number): string {
  mkdirSync(root, { recursive: true, mode: 0o700 })
  const name = new Date(at).toISOString().replaceAll(":", "-").replace(".", "-")
  for (let n = 1; ; n++) {
    const id = n === 1 ? name : `${name}-${n}`
    try {
      mkdirSync(join(root, id), { mode: 0o700 })
      return id
    } catch (error) {
      if (codeOf(error) !== "EEXIST" || n === MAX_TRIES) throw error
    }
  }
}
