import type { StoredMessage } from "../store/history/store.ts"

// From when on a conversation may hold words that neither the person nor the agent wrote.

/** When a web page's or a remote tool's words first stand in it. Without a time that is from its beginning on. */
export function webAt(messages: readonly StoredMessage[]): number | undefined {
  const times = messages.flatMap((message) => (readsElsewhere(message) ? [message.at ?? 0] : []))
  return times.length === 0 ? undefined : Math.min(...times)
}

function readsElsewhere({ parts, effects }: StoredMessage): boolean {
  return (
    parts.some(({ origin }) => origin === "web") ||
    effects.some((effect) => effect.type === "command" && isRemote(effect.command))
  )
}

/** Programs that print what somebody else wrote. As a word anywhere: who runs them, and how, does not matter. */
const FETCHES = /(?<![\w.-])(?:curl|wget|aria2c|xh|httpie|lynx|w3m|e?links|ssh|nc|ncat|telnet|glab|hub)(?![\w.-])/
const HTTPIE = /(?:^|[;&|(`]|\$\()\s*https?\s+[^|;&\n]/
const ASKS_REGISTRY = /(?<![\w.-])(?:npm|pnpm|yarn|bun|pip3?|cargo|gem)\s+(?:view|info|show|search|v)\s/
/** `gh` prints issues, reviews and logs, but for what only does something. */
const GH =
  /(?<![\w./-])gh\s+(?!(?:auth|config|alias|extension|completion|version)\b|\w+\s+(?:create|checkout|merge|ready|close|reopen|delete|edit|comment|lock|develop|clone|fork|rerun|cancel|upload)\b)/
const URL_HOST = /\bhttps?:\/\/(?:[^\s/"'@]*@)?(\[[^\]\s]*\]|[^\s/:"'?#]+)/g
const LOCAL = /^(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1?\]|[\w-]+\.localhost)$/i

/** What a command prints may be a stranger's words. A server on the same machine is the project's own. */
export function isRemote(command: string): boolean {
  if (ASKS_REGISTRY.test(command) || GH.test(command)) return true
  if (!FETCHES.test(command) && !HTTPIE.test(command)) return false
  const hosts = [...command.matchAll(URL_HOST)].map(([, host]) => host!)
  return hosts.length === 0 || !hosts.every((host) => LOCAL.test(host))
}
