import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import type { Machine } from "../agents/kit/connector.ts"
import type { HeadlessReply } from "../agents/kit/headless.ts"
import { DexError, isDexError } from "../core/error.ts"
import { MODEL_RUN_FOLDER, MODEL_RUN_VARIABLE } from "../core/model-run.ts"
import { charactersWithin, tokensOf } from "../core/tokens.ts"
import type { Model, ModelReply, ModelRequest } from "../llm/model.ts"
import { addModelUsage, type ModelUsage } from "../llm/usage.ts"
import { agentName, type ChosenAgent } from "./choose.ts"
import { agentEnded, agentNotStarted, agentRefused, agentTooLoud, agentTooSlow } from "./failure.ts"
import { answerIn, promptOf } from "./prompt.ts"
import { type ProgramEnd, runProgram } from "./run-program.ts"

export type AgentModelSettings = {
  chosen: ChosenAgent
  /** The agent's own choice where absent. */
  model?: string
  maxTokens: number
  machine: Machine
  /** dex's own folder. */
  dexDir: string
  limitMs?: number
}

const LIMIT_MS = 300_000
/** Failures before any model was asked. */
const NOT_ASKED = new Set(["llm_no_program", "llm_refused", "llm_too_old", "llm_no_model"])
/** Agents know no limit of tokens for an answer: it is cut off when it has so many times the characters that it should. */
const FLOOD = 4

/**
 * An installed agent as a model: each request is one run of it, with nothing but the prompt. What it says comes in one
 * piece. It is not run again when it fails: agents try again by themselves.
 */
export function openAgentModel(settings: AgentModelSettings): Model {
  const { chosen, model } = settings
  const total = { input: 0, output: 0, requests: 0, is_estimate: false }
  const reply = async (request: ModelRequest): Promise<ModelReply> => {
    if (request.signal?.aborted) throw stoppedRun(chosen)
    const { system, text } = promptOf(request)
    total.requests++
    const answer = await ask(settings, system, text, request.signal).catch((error: unknown) => {
      // It may have been read all the same; whoever runs the model counts that too.
      if (!isDexError(error) || !NOT_ASKED.has(error.code))
        addModelUsage(total, runUsage({ type: "reply", text: "" }, system, text))
      throw error
    })
    const usage = runUsage(answer, system, text)
    addModelUsage(total, usage)
    const most = charactersWithin(request.max_tokens ?? settings.maxTokens) * FLOOD
    const said = answerIn(answer.text.slice(0, most), request.tools)
    if (said.calls.length === 0) request.onText?.(said.text)
    return { ...said, ...(answer.text.length > most && { finish: "length" as const }), usage }
  }
  const id = model === undefined ? chosen.agent.source : `${chosen.agent.source}/${model}`
  return { id, reply, used: () => ({ ...total }) }
}

type AgentAnswer = Extract<HeadlessReply, { type: "reply" }>

async function ask(
  settings: AgentModelSettings,
  system: string,
  text: string,
  signal?: AbortSignal,
): Promise<AgentAnswer> {
  const { chosen, model, machine, dexDir, limitMs = LIMIT_MS } = settings
  const { headless } = chosen
  const scratch = mkdtempSync(join(tmpdir(), `${MODEL_RUN_FOLDER}-`))
  try {
    const systemFile = join(scratch, "system.md")
    writeFileSync(systemFile, `${system}\n`, { mode: 0o600 })
    const folder = headless.keepsSessions ? join(dexDir, MODEL_RUN_FOLDER) : join(scratch, "empty")
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const call = headless.call({ system, systemFile, scratch, machine, ...(model !== undefined && { model }) })
    for (const [path, content] of Object.entries(call.files ?? {})) {
      mkdirSync(dirname(join(folder, path)), { recursive: true, mode: 0o700 })
      writeFileSync(join(folder, path), content, { mode: 0o600 })
    }
    const env = { ...withoutOurs(machine.env), ...call.env, [MODEL_RUN_VARIABLE]: "1", DEX_QUIET: "1" }
    const run = { program: headless.program, args: call.args, env, folder, input: text, limitMs, signal }
    const end = await runProgram(run).catch((error: NodeJS.ErrnoException) => {
      throw agentNotStarted(chosen, error)
    })
    return answerOf(settings, end, limitMs)
  } finally {
    rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
  }
}

function answerOf({ chosen, model }: AgentModelSettings, end: ProgramEnd, limitMs: number): AgentAnswer {
  if (end.stopped === "cancelled") throw stoppedRun(chosen)
  if (end.stopped === "time") throw agentTooSlow(chosen, limitMs)
  if (end.stopped === "size") throw agentTooLoud(chosen)
  const read = chosen.headless.read(end)
  if (!read || (read.type === "reply" && end.code !== 0)) throw agentEnded(chosen, model, end)
  if (read.type === "failed") throw agentRefused(chosen, model, read.status, read.message)
  if (read.text.trim() === "") throw agentRefused(chosen, model, undefined, "its answer was empty")
  return read
}

function stoppedRun(chosen: ChosenAgent): DexError {
  return new DexError("llm_stopped", `The request to ${agentName(chosen)} was stopped.`)
}

/** Keys for servers are not for agents, and where dex keeps its data does not concern them. */
function withoutOurs(env: Machine["env"]): Machine["env"] {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("DEX_")))
}

function runUsage({ input, output, cost_usd, text }: AgentAnswer, system: string, asked: string): ModelUsage {
  return {
    input: input || tokensOf(system.length + asked.length),
    output: output ?? tokensOf(text.length),
    is_estimate: !input || output === undefined,
    ...(cost_usd !== undefined && { cost_usd }),
  }
}
