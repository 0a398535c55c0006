import { dexHome } from "../config/home.ts"
import { DexError } from "../core/error.ts"
import { toJson } from "../render/json.ts"
import { safeLine } from "../render/terminal.ts"
import { visibleIn } from "../render/visible.ts"
import { many } from "../render/words.ts"
import { logIn } from "../tools/hub/login.ts"

const MOST_BYTES = 64 << 10

/** Asks for the token without showing it, or reads it from a pipe, and keeps it where only its owner can read it. */
export async function hubLogin([address, ...more]: string[], fromStdin: boolean, json: boolean): Promise<number> {
  if (address === undefined || more.length > 0)
    throw new DexError("usage", "Which hub? For example: dex hub login https://hub.example.com")
  if (!fromStdin && !process.stdin.isTTY)
    throw new DexError(
      "usage",
      "There is no terminal to ask on. Pipe the token in: dex hub login ADDRESS --token-stdin",
    )
  const token = fromStdin ? await pipedToken() : await typedToken()
  if (token === "") throw new DexError("usage", "No token was given, so nothing was changed.")
  const found = visibleIn(await logIn(dexHome(process.env), address, token)).output as Awaited<ReturnType<typeof logIn>>
  if (json) process.stdout.write(`${toJson(found)}\n`)
  else {
    const { member, tenant, projects, no_longer_shared } = found
    process.stdout.write(`Logged in to ${safeLine(found.address)} as ${safeLine(member)} (${safeLine(tenant)}).\n`)
    const shared = no_longer_shared.length
    if (shared > 0)
      process.stderr.write(
        `${many(shared, "project was", "projects were")} shared with another hub, and not with this one.\n`,
      )
    process.stderr.write(
      `The hub has ${many(projects.length, "project")} for you. Nothing is shared by logging in: run \`dex hub share\` inside a project.\n`,
    )
  }
  return 0
}

async function typedToken(): Promise<string> {
  const { isCancel, password } = await import("@clack/prompts")
  const token = await password({
    message: "Your token for the hub, or your invitation (it is not shown)",
    mask: "*",
    output: process.stderr,
  })
  if (isCancel(token)) throw new DexError("cancelled", "Nothing was changed.")
  return (token ?? "").trim()
}

async function pipedToken(): Promise<string> {
  let text = ""
  for await (const chunk of process.stdin.setEncoding("utf8") as AsyncIterable<string>) {
    text += chunk
    if (text.length > MOST_BYTES) throw new DexError("key", "That is too long for a token. Nothing was changed.")
  }
  return text.trim()
}
