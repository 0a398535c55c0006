import { homedir } from "node:os"
import { dexHome } from "../config/home.ts"
import { loadSettings } from "../config/load.ts"
import { KEYS_FOR, keyPlace } from "../config/secret.ts"
import { writeKey } from "../config/write.ts"
import { DexError } from "../core/error.ts"
import { shortPath } from "../render/words.ts"

const MOST_BYTES = 64 << 10

/** Asks for a server's key without showing it, or takes it from a pipe, and keeps it where only its owner can read it. */
export async function askKey(name: string): Promise<number> {
  const of = KEYS_FOR.find((server) => server === name)
  if (of === undefined)
    throw new DexError("usage", `Which key? One of: ${KEYS_FOR.map((server) => `${server}.api_key`).join(", ")}.`)
  const home = dexHome(process.env)
  const key = process.stdin.isTTY ? await typedKey(of) : await pipedKey()
  if (key === "")
    throw new DexError("usage", "No key was given, so nothing was changed. On a terminal dex asks for it.")
  const file = writeKey(home, of, key)
  const user = process.env.HOME ?? homedir()
  process.stdout.write(`The key is stored in ${shortPath(file, user)}, which only you can read.\n`)
  const { settings } = loadSettings({ file: home.config, env: process.env })
  const used = keyPlace(of, settings, { env: process.env, home: user })
  if (used?.from === "environment") process.stderr.write(`$${used.place} is set and wins.\n`)
  return 0
}

async function typedKey(of: string): Promise<string> {
  const { isCancel, password } = await import("@clack/prompts")
  const key = await password({ message: `The key for ${of} (it is not shown)`, mask: "*", output: process.stderr })
  if (isCancel(key)) throw new DexError("cancelled", "Nothing was changed.")
  return (key ?? "").trim()
}

async function pipedKey(): Promise<string> {
  let text = ""
  for await (const chunk of process.stdin.setEncoding("utf8") as AsyncIterable<string>) {
    text += chunk
    if (text.length > MOST_BYTES) throw new DexError("key", "That is too long for a key. Nothing was changed.")
  }
  return text.trim()
}
