import { CONTEXT_TAG } from "../../core/context-tag.ts"
import { splitInjected, type TextRun } from "../kit/injected.ts"

/** What Codex, its extensions and its hooks put into the user's turn. */
const ENVELOPES = [
  CONTEXT_TAG,
  "environment_context",
  "user_instructions",
  "turn_aborted",
  "goal_context",
  "codex_internal_context",
  "recommended_plugins",
  "skill",
  "skills_instructions",
  "permissions instructions",
  "subagent_notification",
  "user_shell_command",
  "user_action",
  "collaboration_mode",
  "model_switch",
  "app-context",
  "apps_instructions",
  "plugins_instructions",
  "hook_prompt",
  "hook_context",
] as const

const INSTRUCTIONS_END = "</INSTRUCTIONS>"
const REQUEST = "## My request for Codex:"

/** Splits a user's text into what was typed and what was put around it. A prompt may follow an envelope directly. */
export function splitPrompt(text: string): TextRun[] {
  const trimmed = text.trim()
  if (/^<\/?image\b[^>]{0,400}>$/.test(trimmed)) return [{ text: trimmed, injected: true }]
  if (!trimmed.startsWith("# AGENTS.md")) {
    return splitRequest(trimmed).flatMap((run) => (run.injected ? [run] : splitInjected(run.text, ENVELOPES)))
  }
  const end = trimmed.lastIndexOf(INSTRUCTIONS_END)
  if (end === -1) return [{ text: trimmed, injected: true }]
  const rest = trimmed.slice(end + INSTRUCTIONS_END.length)
  return [{ text: trimmed.slice(0, end + INSTRUCTIONS_END.length), injected: true }, ...splitPrompt(rest)]
}

/** The IDE extension writes open files and selections before the request. */
export function splitRequest(text: string): TextRun[] {
  const trimmed = text.trim()
  const at = trimmed.startsWith("# ") ? trimmed.indexOf(REQUEST) : -1
  const runs =
    at === -1
      ? [{ text: trimmed, injected: false }]
      : [
          { text: trimmed.slice(0, at + REQUEST.length), injected: true },
          { text: trimmed.slice(at + REQUEST.length).trim(), injected: false },
        ]
  return runs.filter((run) => run.text !== "")
}
