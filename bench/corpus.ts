import { closeSync, mkdirSync, openSync, writeSync } from "node:fs"
import { join } from "node:path"

// A history of any size to measure with: Claude Code transcripts of code-like text. The vocabulary is Zipf-distributed (150,000
// words, English and identifiers), a message has 548 characters on average, and the same seed gives the same bytes on every
// machine. A conversation quotes itself, as real ones do when files are read again and again: the rate is chosen so that 64 kB of
// it compress like 64 kB of the genuine corpus (zstd 3: 0.25).

export const VOCABULARY = 150_000

export type CorpusOptions = {
  messages: number
  messagesPerConversation?: number
  seed?: number
  meanChars?: number
  /** Only prompts and answers, without tools: for peers that store nothing else. */
  plain?: boolean
  /** The share of the text that is quoted from earlier in the same conversation. */
  quoted?: number
}

const QUOTED = 0.72

/** Writes transcripts below `claudeDir/projects` and returns how much it wrote. */
export function generateCorpus(
  claudeDir: string,
  options: CorpusOptions,
): { conversations: number; messages: number; bytes: number; textBytes: number } {
  const { messages, messagesPerConversation = 200, seed = 1, meanChars = 548, plain = false, quoted = QUOTED } = options
  const random = generator(seed)
  const vocabulary = makeVocabulary(generator(seed + 1))
  const written = { conversations: 0, messages: 0, bytes: 0, textBytes: 0 }
  const started = Date.UTC(2025, 0, 1)
  while (written.messages < messages) {
    const c = written.conversations++
    const count = Math.min(messagesPerConversation, messages - written.messages)
    const project = `project-${c % 20}`
    const folder = join(claudeDir, "projects", `-code-${project}`)
    mkdirSync(folder, { recursive: true })
    const id = uuid(random)
    const lines: string[] = []
    const passages: string[] = []
    let parent: string | null = null
    for (let m = 0; m < count; m++) {
      const at = started + (c * 3600 + m * 20) * 1000
      const text = makeText(random, vocabulary, meanChars, passages, quoted)
      written.textBytes += Buffer.byteLength(text)
      const record = makeRecord(random, { id, parent, at, cwd: `/code/${project}`, m, text, plain })
      parent = record.uuid
      lines.push(JSON.stringify(record))
    }
    const fd = openSync(join(folder, `${id}.jsonl`), "w")
    const content = `${lines.join("\n")}\n`
    written.bytes += writeSync(fd, content)
    closeSync(fd)
    written.messages += count
  }
  return written
}

function makeRecord(
  random: () => number,
  turn: { id: string; parent: string | null; at: number; cwd: string; m: number; text: string; plain: boolean },
) {
  const common = {
    parentUuid: turn.parent,
    isSidechain: false,
    userType: "external",
    cwd: turn.cwd,
    sessionId: turn.id,
    version: "2.1.197",
    gitBranch: "main",
    uuid: uuid(random),
    timestamp: new Date(turn.at).toISOString(),
  }
  // One prompt, then the agent works: text, a tool call, its result, and so on.
  const phase = turn.m % 10
  if (phase === 0 || (turn.plain && turn.m % 2 === 0))
    return { ...common, type: "user", message: { role: "user", content: turn.text } }
  const call = `toolu_${turn.id.slice(0, 8)}_${turn.m - (phase % 2 === 0 ? 1 : 0)}`
  if (phase % 2 === 0) {
    return {
      ...common,
      type: "user",
      message: { role: "user", content: [{ tool_use_id: call, type: "tool_result", content: turn.text }] },
      toolUseResult: { stdout: "", stderr: "", interrupted: false },
    }
  }
  const content: object[] = turn.plain
    ? [{ type: "text", text: turn.text }]
    : [
        { type: "text", text: turn.text.slice(0, turn.text.length >> 1) },
        { type: "tool_use", id: call, name: "Bash", input: { command: turn.text.slice(turn.text.length >> 1) } },
      ]
  return {
    ...common,
    type: "assistant",
    requestId: `req_${turn.m}`,
    message: {
      id: `msg_${turn.id.slice(0, 8)}_${turn.m}`,
      type: "message",
      role: "assistant",
      model: "model-a",
      content,
      stop_reason: null,
      usage: { input_tokens: 4, output_tokens: 100, cache_read_input_tokens: 1000, cache_creation_input_tokens: 10 },
    },
  }
}

function makeText(
  random: () => number,
  vocabulary: string[],
  meanChars: number,
  passages: string[],
  quoted: number,
): string {
  // Lengths are skewed like real ones: many short messages, few long ones.
  const target = Math.max(20, -Math.log(1 - random()) * meanChars)
  let text = ""
  while (text.length < target) {
    if (passages.length > 0 && random() < quoted) {
      text += passages[Math.floor(random() * passages.length)]!
      continue
    }
    let passage = ""
    for (let words = 6 + Math.floor(random() * 14); words > 0; words--) {
      const word = vocabulary[zipf(random)]!
      const mark = random()
      passage += mark < 0.04 ? `${word}.\n` : mark < 0.08 ? `${word}(` : mark < 0.12 ? `${word}) ` : `${word} `
    }
    passages.push(passage)
    text += passage
  }
  return text.trimEnd()
}

/** A rank between 0 and VOCABULARY - 1, with a probability that falls as 1/rank. */
export function zipf(random: () => number): number {
  return Math.min(VOCABULARY - 1, Math.floor(Math.exp(random() * Math.log(VOCABULARY + 1))) - 1)
}

export function makeVocabulary(random: () => number): string[] {
  const consonants = "bcdfghjklmnprstvwz"
  const vowels = "aeiou"
  const syllable = () =>
    consonants[Math.floor(random() * consonants.length)]! +
    vowels[Math.floor(random() * vowels.length)]! +
    (random() < 0.4 ? consonants[Math.floor(random() * consonants.length)]! : "")
  const words = new Set<string>("the to of a in is and file error function const return import docker test".split(" "))
  while (words.size < VOCABULARY) {
    let word = ""
    const syllables = 1 + Math.floor(Math.log2(2 + words.size / 20) / 4 + random() * 2)
    for (let i = 0; i < syllables; i++) word += syllable()
    const kind = random()
    if (kind < 0.12) word = `${word}_${syllable()}${syllable()}`
    else if (kind < 0.24) word = `${word}${syllable().replace(/^./, (c) => c.toUpperCase())}${syllable()}`
    else if (kind < 0.3) word = `src/${word}/${syllable()}.ts`
    words.add(word)
  }
  return [...words]
}

/** mulberry32: small, fast, and the same everywhere. */
export function generator(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

function uuid(random: () => number): string {
  const hex = Array.from({ length: 32 }, () => Math.floor(random() * 16).toString(16)).join("")
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`
}
