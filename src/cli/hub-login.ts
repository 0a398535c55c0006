import { setTimeout } from "node:timers/promises"
import { dexHome } from "../config/home.ts"
import { DexError } from "../core/error.ts"
import { toJson } from "../render/json.ts"
import { safeLine } from "../render/terminal.ts"
import { withVisibleTexts } from "../render/visible.ts"
import { many } from "../render/words.ts"
import { deviceLogin, logIn, loginMethods } from "../tools/hub/login.ts"
import { say } from "./print/words.ts"

const MAX_BYTES = 64 << 10

export type LoginFlags = { token_stdin?: boolean; paste?: boolean }

/**
 * Logs in with a token. The token comes from a pipe, from the hub's identity provider (through the browser), or from the keyboard
 * (without echo). It is stored so that only its owner can read it.
 */
export async function hubLogin([address, ...more]: string[], options: LoginFlags, json: boolean): Promise<number> {
  if (address === undefined || more.length > 0)
    throw new DexError("usage", "Which hub? For example: dex hub login https://hub.example.com")
  const token = options.token_stdin ? await pipedToken() : await interactiveToken(address, options.paste === true)
  if (token === "") throw new DexError("usage", "No token was given, so nothing was changed.")
  const login = withVisibleTexts(await logIn(dexHome(process.env), address, token)).output as Awaited<
    ReturnType<typeof logIn>
  >
  if (json) process.stdout.write(`${toJson(login)}\n`)
  else {
    const { member, tenant, projects, no_longer_shared } = login
    process.stdout.write(`Logged in to ${safeLine(login.address)} as ${safeLine(member)} (${safeLine(tenant)}).\n`)
    const formerCount = no_longer_shared.length
    if (formerCount > 0)
      say(`${many(formerCount, "project was", "projects were")} shared with another hub, but not with this one.`)
    say(
      `You have access to ${many(projects.length, "project")} on this hub. Logging in shares nothing. To share a project, run \`dex hub share\` inside it.`,
    )
  }
  return 0
}

async function interactiveToken(address: string, paste: boolean): Promise<string> {
  if (!paste && (await loginMethods(address)).includes("device")) return tokenByBrowser(address)
  if (process.stdin.isTTY) return typedToken()
  throw new DexError(
    "usage",
    "There is no terminal on which to enter a token. Pipe the token in: dex hub login ADDRESS --token-stdin",
  )
}

/** Writes to stderr, because a script may read stdout. Ctrl-C ends the wait. */
async function tokenByBrowser(address: string): Promise<string> {
  const controller = new AbortController()
  const onInterrupt = () => controller.abort()
  process.once("SIGINT", onInterrupt)
  try {
    return await deviceLogin(address, {
      signal: controller.signal,
      wait: (ms, signal) => setTimeout(ms, undefined, { signal }),
      show: ({ user_code, verification_uri, verification_uri_complete }) => {
        // Not wrapped, so that the address can be clicked and copied.
        process.stderr.write(`Open ${safeLine(verification_uri_complete ?? verification_uri)}\n`)
        say(
          `and check that it shows this code: ${safeLine(user_code)}`,
          "Waiting for you to confirm there. Ctrl-C stops waiting; --paste asks for a token or an invitation instead.",
        )
      },
    })
  } catch (error) {
    if (controller.signal.aborted) throw new DexError("cancelled", "Nothing was changed.", { cause: error })
    throw error
  } finally {
    process.off("SIGINT", onInterrupt)
  }
}

async function typedToken(message = "Your token for the hub, or your invitation (it is not shown)"): Promise<string> {
  const { isCancel, password } = await import("@clack/prompts")
  const token = await password({
    message,
    mask: "*",
    output: process.stderr,
  })
  if (isCancel(token)) throw new DexError("cancelled", "Nothing was changed.")
  return (token ?? "").trim()
}

/** Reads a code from a pipe, or from the keyboard without echo. */
export function askForCode(message: string): Promise<string> {
  return process.stdin.isTTY ? typedToken(message) : pipedToken()
}

async function pipedToken(): Promise<string> {
  let text = ""
  for await (const chunk of process.stdin.setEncoding("utf8") as AsyncIterable<string>) {
    text += chunk
    if (text.length > MAX_BYTES) throw new DexError("key", "That is too long for a token. Nothing was changed.")
  }
  return text.trim()
}
