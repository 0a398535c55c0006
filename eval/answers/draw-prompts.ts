import { createHash } from "node:crypto"
import { parseArgs } from "node:util"
import { formatRef } from "../../src/core/ref.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../../src/store/history/store.ts"
import { openGenuineHome } from "../genuine-home.ts"
import { Absent } from "../set.ts"
import { type Half, linesOf } from "./labels.ts"

// The prompts of moments.jsonl that were drawn (p-001 to p-200), for a person to read and label: a random sample of what
// people typed in the later half of the genuine conversations. Every conversation is wholly in one half: that of the moments
// which were labelled before (m-01 to m-64), or else by its hash.
//   node scripts/run.mjs eval/answers/draw-prompts.ts [--seed 35] [--count 200]

export type DrawnPrompt = { ref: string; half: Half }

/** The later half of the conversations that a person led, by their start. */
export async function laterConversations(store: HistoryReader): Promise<ConversationRow[]> {
  const { rows } = await store.list({ limit: 100_000, offset: 0, kinds: ["person"] })
  const ordered = rows.toSorted((a, b) => (a.started_at ?? 0) - (b.started_at ?? 0))
  return ordered.slice(Math.floor(ordered.length / 2))
}

/** What the person typed in this message, empty if nothing. */
export function typedIn({ superseded, copied, role, parts }: StoredMessage): string {
  if (superseded || copied || role !== "user") return ""
  const texts = parts.flatMap((part) => (part.type === "text" && part.origin === "person" ? part.text : []))
  return texts.join("\n").trim()
}

async function drawPrompts(store: HistoryReader, seed: string, count: number): Promise<DrawnPrompt[]> {
  const labelled = linesOf<{ id: string; at: string; half: Half }>("moments.jsonl").filter(({ id }) =>
    id.startsWith("m-"),
  )
  const all: DrawnPrompt[] = []
  for (const row of await laterConversations(store)) {
    const id = formatRef(row.ref)
    const halves = new Set(labelled.filter(({ at }) => at.startsWith(`${id}#`)).map(({ half }) => half))
    if (halves.size > 1) continue
    const [half = halfByHash(id)] = halves
    for (const message of await store.messages(row.ref)) {
      const ref = formatRef({ ...row.ref, number: message.number })
      if (typedIn(message) !== "" && !labelled.some(({ at }) => at === ref)) all.push({ ref, half })
    }
  }
  const drawn = ({ ref }: DrawnPrompt) => createHash("sha256").update(`${seed} ${ref}`).digest("hex")
  return all.sort((a, b) => drawn(a).localeCompare(drawn(b))).slice(0, count)
}

function halfByHash(conversation: string): Half {
  return createHash("sha256").update(`prompts ${conversation}`).digest()[0]! % 2 === 0 ? "build" : "held"
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { seed: { type: "string", default: "35" }, count: { type: "string", default: "200" } },
  })
  try {
    const home = await openGenuineHome()
    for (const drawn of await drawPrompts(home.store, values.seed, Number(values.count)))
      console.log(JSON.stringify(drawn))
    home.close()
  } catch (error) {
    if (!(error instanceof Absent)) throw error
    console.log(`NOT RUN: ${error.message}`)
  }
}
