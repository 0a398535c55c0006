import { call, putSession, writer } from "../support/claude-code.ts"
import { randomWords } from "../support/random-words.ts"

export const OTHER = "22222222-2222-4333-8444-555555555555"
export const TURNS = 120

/** A unique word. The index omits what a word shares with the previous one, so tests search for its end. */
export const canary = (of: string, n: number) => `${"bdfgklmnpr"[n % 10]}${"aeiou"[n % 5]}${of}canary${n}`
export const ends = (of: string) => Array.from({ length: TURNS }, (_, n) => canary(of, n).slice(2))

/** A long session that hit an error and fixed it, with a unique word in every message. */
export function longSession(home: string, session: string, of: string): void {
  const words = randomWords(of.length)
  const transcript = writer({ sessionId: session }, of)
  transcript.prompt(`${canary(of, 0)} fails, make the tests pass`)
  const error = `TypeError: ${canary(of, 1)} is not a function`
  transcript.answer(`m1_${of}`, [call(`c1_${of}`, "Bash", { command: "npm test" })])
  transcript.result(`c1_${of}`, error, { toolUseResult: `Error: ${error}` }, { is_error: true })
  const filePath = `/home/dev/proj/src/${canary(of, 2)}.ts`
  transcript.answer(`m2_${of}`, [call(`c2_${of}`, "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
  const structuredPatch = [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: ["-a", `+${canary(of, 3)}()`] }]
  transcript.result(`c2_${of}`, "The file was updated.", { toolUseResult: { filePath, structuredPatch } })
  transcript.answer(`m3_${of}`, [call(`c3_${of}`, "Bash", { command: "npm test" })])
  transcript.result(`c3_${of}`, "12 passed", { toolUseResult: { stdout: "12 passed", stderr: "", interrupted: false } })
  for (let n = 4; n < TURNS; n++) {
    if (n % 2) transcript.prompt(`${words(300)} ${canary(of, n)} ${words(300)}`)
    else transcript.answer(`t${n}_${of}`, [{ type: "text", text: `${words(300)} ${canary(of, n)} ${words(300)}` }])
  }
  transcript.plain({ type: "custom-title", customTitle: `About ${canary(of, 0)}`, sessionId: session })
  putSession(home, transcript.records, session)
}
