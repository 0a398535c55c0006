import { number, parseObject, record, string } from "../../core/record.ts"
import type { HeadlessAgent, HeadlessReply } from "../kit/headless.ts"

/** The settings that dex writes to the working folder, where they override the user's settings. */
const SETTINGS = {
  tools: { core: ["none"] },
  hooksConfig: { enabled: false },
  skills: { enabled: false },
  experimental: { enableAgents: false },
  context: { includeDirectoryTree: false, discoveryMaxDirs: 0, memoryBoundaryMarkers: [] },
  general: {
    topicUpdateNarration: false,
    maxAttempts: 2,
    // Gemini CLI always saves sessions. With this setting, each run deletes all sessions except the latest.
    sessionRetention: { enabled: true, maxAge: "1h", minRetention: "1h", maxCount: 1 },
  },
}

/** Tested with version 0.61.0. */
export const geminiCliHeadless: HeadlessAgent = {
  program: "gemini",
  install: "npm install -g @google/gemini-cli@latest",
  login: "gemini, then /auth",
  sendsTo: "Google, together with your global GEMINI.md, which Gemini CLI always adds",
  keepsSessions: true,
  call: ({ systemFile, model, scratch }) => ({
    args: [
      ...["--output-format", "json"],
      ...["--approval-mode", "default"],
      ...["--extensions", "none"],
      ...["--allowed-mcp-server-names", "dex-allows-none"],
      ...(model === undefined ? [] : ["--model", model]),
    ],
    env: {
      GEMINI_SYSTEM_MD: systemFile,
      GEMINI_CLI_NO_RELAUNCH: "1",
      // The working folder belongs to dex. Without this variable, Gemini CLI would ignore the settings in it.
      GEMINI_CLI_TRUST_WORKSPACE: "true",
      TMPDIR: scratch,
    },
    files: { ".gemini/settings.json": `${JSON.stringify(SETTINGS, undefined, 2)}\n` },
  }),
  read: ({ stdout, stderr }) => readAnswer(stdout) ?? readFailure(stderr),
}

function readAnswer(stdout: string): HeadlessReply | undefined {
  const result = objectIn(stdout)
  const text = string(result?.response)
  if (text === undefined) return undefined
  const models = Object.values(record(record(result?.stats)?.models) ?? {})
  const count = (name: string) =>
    models.reduce<number>((sum, model) => sum + (number(record(record(model)?.tokens)?.[name]) ?? 0), 0)
  return {
    type: "reply",
    text,
    input: models.length > 0 ? count("prompt") : undefined,
    output: models.length > 0 ? count("candidates") + count("thoughts") : undefined,
  }
}

function readFailure(stderr: string): HeadlessReply | undefined {
  const error = record(objectIn(stderr)?.error)
  const message = string(error?.message)
  if (message === undefined) return undefined
  const code = number(error?.code)
  // A code below 400 is Gemini CLI's own exit code, such as 41 if there is no login.
  return {
    type: "failed",
    message,
    ...(code === 41 ? { status: 401 } : code !== undefined && code >= 400 && { status: code }),
  }
}

/** Finds the last object in the output, after warnings and stack traces. */
function objectIn(text: string): Record<string, unknown> | undefined {
  const start = text.startsWith("{\n") ? 0 : text.lastIndexOf("\n{\n") + 1
  return parseObject(text.slice(start))
}
