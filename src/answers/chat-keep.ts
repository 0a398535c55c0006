import { appendFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { codeOf, messageOf } from "../core/error.ts"
import { redactText } from "../redact/redact.ts"
import type { Dex } from "../tools/context.ts"
import type { Turn } from "./chat.run.ts"

/** A chat that is stored in a folder. Every line is written at once, so if the process dies, only the running answer is lost. */
export type StoredChat = {
  /** Undefined before the first question, and if nothing can be written. */
  id(): string | undefined
  folder(): string | undefined
  question(text: string): void
  answer(turn: Turn): void
  cleared(): void
  /** Why the chat is not stored. */
  problem(): string | undefined
}

export type AboutChat = { model?: string; collections?: string[]; useCase: () => string | undefined }

/** Stores a chat. Writes nothing before the first question. A write error does not end the chat. */
export function storeChat(dex: Dex, about: AboutChat): StoredChat {
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
  const say = (record: { type: string; [field: string]: unknown }) => {
    const line = JSON.stringify({ ...record, at: new Date(dex.now()).toISOString() })
    appendFileSync(join(root, id!, "messages.jsonl"), `${line}\n`, { mode: 0o600 })
  }
  const describe = () => {
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
      ...described(about),
      dex_version: dex.version,
    }
    try {
      writeFileSync(`${file}.new`, `${JSON.stringify(metadata, undefined, 2)}\n`, { mode: 0o600 })
      renameSync(`${file}.new`, file)
    } finally {
      rmSync(`${file}.new`, { force: true })
    }
  }
  const begin = (text: string) => {
    startedAt = dex.now()
    title = text.replace(/\s+/g, " ").trim().slice(0, 120)
    id = makeChatFolder(root, startedAt)
    say({ type: "chat", id, cwd: dex.cwd, dex_version: dex.version, ...described(about) })
  }

  return {
    id: () => (problem === undefined ? id : undefined),
    folder: () => (problem === undefined && id !== undefined ? join(root, id) : undefined),
    problem: () => problem,
    question: (typed) =>
      attempt(() => {
        const text = redactText(typed)
        if (id === undefined) begin(text)
        questions++
        say({ type: "question", n: questions, text, use_case: redacted(about.useCase()) })
        describe()
      }),
    answer: ({ answer, sources, confidence, extractive, partial, stopped, note, used }) =>
      attempt(() => {
        const isEmpty = stopped && sources.length === 0
        say({
          type: "answer",
          n: questions,
          text: isEmpty ? "" : redactText(answer),
          sources,
          confidence,
          extractive,
          partial,
          stopped,
          note: redacted(note),
          used,
        })
        describe()
      }),
    cleared: () =>
      attempt(() => {
        if (id !== undefined) say({ type: "clear" })
      }),
  }
}

function described({ model, collections, useCase }: AboutChat) {
  return { model, collections, use_case: redacted(useCase()) }
}

function redacted(text: string | undefined): string | undefined {
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
