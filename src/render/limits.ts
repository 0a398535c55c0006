/** The kinds of text in a line. They differ in how much text is worth showing. */
export type TextKind =
  | "user"
  | "command_output"
  | "found_files"
  | "edited_text"
  | "web_output"
  | "task_output"
  | "other_output"
  | "answer"
  | "thinking"
  | "call"
  | "system"

/** The maximum number of characters of each kind at 50 tokens per message. Other limits are calculated from it. */
const BASE_CHARS: Record<TextKind, number> = {
  user: 200,
  command_output: 150,
  found_files: 100,
  edited_text: 80,
  web_output: 100,
  task_output: 100,
  other_output: 100,
  answer: 80,
  thinking: 50,
  call: 60,
  system: 80,
}
export const DEFAULT_TOKENS_PER_MSG = 50
/** The minimum number of tokens per message. A line with fewer says nothing, so fewer messages are shown instead. */
export const MIN_TOKENS_PER_MSG = 5

/** The minimum number of tokens at which a message is readable. A scan leaves messages out rather than show less of each. */
export const READABLE_TOKENS_PER_MSG = 20

export function limitOf(kind: TextKind, tokensPerMsg: number): number {
  return Math.floor((BASE_CHARS[kind] * tokensPerMsg) / DEFAULT_TOKENS_PER_MSG)
}

/** The minimum number of tokens per message at which a text of this length is not cut. */
export function tokensPerMsgFor(kind: TextKind, length: number): number {
  return (length * DEFAULT_TOKENS_PER_MSG) / BASE_CHARS[kind]
}
