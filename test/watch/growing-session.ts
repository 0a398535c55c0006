import { claudeSession } from "../support/home.ts"

export const SESSION = "77777777-7777-4777-8777-777777777777"

let count = 0
/** The next line of its file. */
export function line(text: string): string {
  count++
  return `${JSON.stringify({
    type: "user",
    uuid: `77777777-${count}`,
    parentUuid: null,
    sessionId: SESSION,
    cwd: "/code/api",
    version: "2.1.197",
    isSidechain: false,
    userType: "external",
    timestamp: new Date(Date.UTC(2026, 10, 12) + count * 1000).toISOString(),
    message: { role: "user", content: text },
  })}\n`
}

/** A session with one message, whose file grows by `line`. */
export function session(home: string): string {
  return claudeSession(home, { id: SESSION, start: "2026-11-12T09:00:00Z", turns: [{ user: "the first message" }] })
}
