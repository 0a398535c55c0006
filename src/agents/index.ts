import type { SourceId } from "../core/conversation.ts"
import type { Agent } from "./agent.ts"
import { aider } from "./aider/agent.ts"
import { amp } from "./amp/agent.ts"
import { antigravity } from "./antigravity/agent.ts"
import { auggie } from "./auggie/agent.ts"
import { claudeCode } from "./claude-code/agent.ts"
import { iflow, openClaude, qoder } from "./claude-code/variants.ts"
import { cline } from "./cline/agent.ts"
import { codex } from "./codex/agent.ts"
import { openInterpreter, traeX } from "./codex/variants.ts"
import { continueDev } from "./continue/agent.ts"
import { copilot } from "./copilot/agent.ts"
import { crush } from "./crush/agent.ts"
import { cursor } from "./cursor/agent.ts"
import { dexChat } from "./dex-chat/agent.ts"
import { dexNote } from "./dex-note/agent.ts"
import { droid } from "./droid/agent.ts"
import { geminiCli } from "./gemini-cli/agent.ts"
import { tabnineCli } from "./gemini-cli/variants.ts"
import { goose } from "./goose/agent.ts"
import { grok } from "./grok/agent.ts"
import { hermes } from "./hermes/agent.ts"
import { kimiCode } from "./kimi-code/agent.ts"
import { kiro } from "./kiro/agent.ts"
import { mistralVibe } from "./mistral-vibe/agent.ts"
import { openclaw } from "./openclaw/agent.ts"
import { opencode } from "./opencode/agent.ts"
import { kilo, mimocode } from "./opencode/variants.ts"
import { openhands } from "./openhands/agent.ts"
import { pi } from "./pi/agent.ts"
import { omp } from "./pi/variants.ts"
import { qwenCode } from "./qwen-code/agent.ts"
import { rooCode } from "./roo-code/agent.ts"
import { vscode } from "./vscode/agent.ts"
import { zed } from "./zed/agent.ts"

/** Every agent that dex knows. A new one is a folder and one more line. */
export const agents: readonly Agent[] = [
  claudeCode,
  codex,
  opencode,
  cursor,
  geminiCli,
  pi,
  qwenCode,
  kimiCode,
  grok,
  cline,
  continueDev,
  openclaw,
  goose,
  mistralVibe,
  kiro,
  hermes,
  antigravity,
  openhands,
  amp,
  zed,
  rooCode,
  crush,
  droid,
  openClaude,
  iflow,
  qoder,
  traeX,
  openInterpreter,
  kilo,
  mimocode,
  tabnineCli,
  omp,
  aider,
  auggie,
  vscode,
  copilot,
  dexChat,
  dexNote,
]

/** What dex keeps of its own: no agent that somebody installed. */
export function isOwn(source: SourceId): boolean {
  return source === dexChat.source || source === dexNote.source
}

/** Of counts by source, those of agents. */
export function agentsIn(sources: Readonly<Record<SourceId, number>>): Record<SourceId, number> {
  return Object.fromEntries(Object.entries(sources).filter(([source]) => !isOwn(source)))
}

/** What a conversation can be of: an agent that is read, or a document. */
export const sourceIds: readonly SourceId[] = [
  ...agents.filter(({ connector }) => connector !== undefined).map(({ source }) => source),
  "docs",
]

export function agentOf(source: SourceId): Agent | undefined {
  return agents.find((agent) => agent.source === source)
}
