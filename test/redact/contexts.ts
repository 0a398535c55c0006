import type { Random } from "./secrets.ts"

// The ways in which a transcript shows a secret: surrounded, coloured, numbered, prefixed, wrapped or cut.

export type Context = {
  name: string
  put(text: string, r: Random): string
  /** Removes the decoration again, as a reader would: a secret must not be readable in the result either. */
  strip(shown: string): string
}

const ESC = "\u001b"
const LOG_PREFIXES = [
  "2026-11-15T10:00:00Z INFO [worker-3] ",
  "2026-11-15 10:00:00,123 - app.settings - DEBUG - ",
  "Nov 15 10:00:00 web-1 app[4242]: ",
  "[10:00:00] ",
  "web-1  | ",
  "I1115 10:00:00.000000       1 main.go:42] ",
]
const GREP_PREFIXES = ["src/config/prod.env:12:", "config/settings.yml-7-", "./deploy.sh:", "12:"]
const CUTS = ["\n... [output truncated]", "…", "\n[1234 more characters]", "..."]

export const CONTEXTS: Context[] = [
  whole("bare", (text) => text),
  whole("prose", (text) => `I found this in the config: ${text} and it should be rotated.`),
  whole("backtick", (text) => `the value \`${text}\` was used`),
  {
    name: "json-escaped",
    put: (text) => JSON.stringify({ output: JSON.stringify({ stdout: `line\n${text}\nend` }) }),
    strip: (shown) => shown.replace(/\\+n/g, "\n"),
  },
  lines("diff", (text, r) => mapLines(text, (line) => `${r.pick(["+", "-", "+"])}${line}`), /^[+-]/gm),
  lines(
    "numbered",
    (text, r) => {
      const from = 1 + r.int(900)
      const mark = r.pick(["→", "\t", " | ", ": "])
      return mapLines(text, (line, i) => `${String(from + i).padStart(6)}${mark}${line}`)
    },
    /^ *\d+(?:→|\t| \| |: )/gm,
  ),
  { name: "ansi", put: coloured, strip: (shown) => shown.replace(/\u001b\[[\d;]*[mK]/g, "") },
  {
    name: "invisible",
    put: (text, r) => {
      const mark = r.pick(["\u200b", "\u200c", "\u2060", "\u00ad", "\ufeff"])
      const at = 2 + r.int(Math.max(1, text.length - 4))
      return `${mark}${text.slice(0, at)}${mark}${text.slice(at)}${mark}`
    },
    strip: (shown) => shown.replace(/[\u00ad\u200b-\u200d\u2060\ufeff]/g, ""),
  },
  {
    name: "wrapped",
    put: (text) => mapLines(text, (line) => line.match(/.{1,80}/g)?.join("\n") ?? ""),
    strip: (shown) => shown.replaceAll("\n", ""),
  },
  prefixed("grep", GREP_PREFIXES),
  prefixed("log", LOG_PREFIXES),
  whole("cut tail", (text, r) => `${text.slice(0, Math.floor(text.length * 0.75))}${r.pick(CUTS)}`),
  whole("cut head", (text) => `[truncated] ...${text.slice(Math.floor(text.length * 0.25))}`),
]

/** The contexts of text that was neither wrapped nor cut. */
export const WHOLE_CONTEXTS = CONTEXTS.filter(({ name }) => !/^(?:wrapped|cut)/.test(name))

const LEAK = 12

/** The first part of a secret that is still readable, if any: twelve characters in a row, or all of a shorter one. */
export function readable(secrets: string[], redacted: string, context: Context): string | undefined {
  const shown = [redacted, context.strip(redacted)]
  for (const secret of secrets) {
    const width = Math.min(LEAK, secret.length)
    for (let at = 0; at + width <= secret.length; at++) {
      const piece = secret.slice(at, at + width)
      if (shown.some((text) => text.includes(piece))) return piece
    }
  }
  return undefined
}

function whole(name: string, put: Context["put"]): Context {
  return { name, put, strip: (shown) => shown }
}

function lines(name: string, put: Context["put"], prefix: RegExp): Context {
  return { name, put, strip: (shown) => shown.replace(prefix, "").replaceAll("\n", "") }
}

function prefixed(name: string, prefixes: string[]): Context {
  return {
    name,
    put: (text, r) => {
      const prefix = r.pick(prefixes)
      return mapLines(text, (line) => `${prefix}${line}`)
    },
    strip: (shown) => prefixes.reduce((rest, prefix) => rest.replaceAll(prefix, ""), shown).replaceAll("\n", ""),
  }
}

function mapLines(text: string, map: (line: string, i: number) => string): string {
  return text.split("\n").map(map).join("\n")
}

/** Colours like those of `ls`, `grep --color`, node's console and environment dumps: on everything, the name, or the value. */
function coloured(text: string, r: Random): string {
  const on = `${ESC}[${r.pick(["32", "1;31", "38;5;214", "01;31", "36"])}m`
  const off = r.pick([`${ESC}[0m`, `${ESC}[m`, `${ESC}[39m`, `${ESC}[m${ESC}[K`])
  const name = /^[\w.-]+(?=["']?\s?[:=])/.exec(text)?.[0]
  const how = r.int(name ? 3 : 2)
  if (how === 0) return `${on}${text}${off}`
  if (how === 1) return mapLines(text, (line) => `${on}${line}${off}`)
  return `${on}${name}${off}${text.slice(name!.length)}`
}
