import type { Agent } from "../agents.ts"
import type { What } from "./difference.ts"

/** Differences that somebody has looked at. `names` may contain `*` and `**`, as in the names of files. */
export type Explained = { agents: readonly Agent["name"][]; what: What; names: readonly string[]; why: string }

const SETTINGS = "settings, state, locks and logs of the program, without a word of the conversation"
const OWN_FILES = "files of the program itself: its code, documents, skills and caches"
const SNAPSHOT = "a git repository with the state of the project's files; `index` lists their names"
const LIST = "a list of the sessions, with their titles and times; dex reads the sessions"
const LOG = "a log for the program's developers, with pieces of what the sessions contain"

export const EXPLAINED: readonly Explained[] = [
  {
    agents: ["claude_code"],
    what: "file",
    names: [".claude.json", ".claude/backups/.claude.json.backup.*", ".claude/plugins/store/*.json"],
    why: SETTINGS,
  },
  {
    agents: ["codex"],
    what: "file",
    names: [
      ...[
        ".codex/.sandbox_migration",
        ".codex/.tmp/*.lock",
        ".codex/installation_id",
        ".codex/thread-writer-locks/*.lock",
      ],
      ...[".codex/goals_1.sqlite", ".codex/logs_2.sqlite", ".codex/memories_1.sqlite", ".codex/queue_1.sqlite"],
    ],
    why: SETTINGS,
  },
  { agents: ["codex"], what: "file", names: [".codex/skills/.system/**"], why: OWN_FILES },
  {
    agents: ["codex"],
    what: "copy",
    names: [".codex/state_5.sqlite"],
    why: "dex reads titles and lineage from it; its texts are those of the rollouts",
  },
  {
    agents: ["codex"],
    what: "copy",
    names: [".codex/thread_history_1.sqlite"],
    why: "what Codex shows of its rollouts, made from them; dex reads it only for threads without a rollout",
  },
  {
    agents: ["opencode", "kilo"],
    what: "file",
    names: [
      ...[
        ".config/{opencode,kilo}/.gitignore",
        ".config/kilo/.bash-permission-migrated",
        ".local/state/opencode/locks/**",
      ],
      ...[
        ".local/state/kilo-sandbox-policy/**",
        ".local/share/kilo/telemetry-id",
        ".local/share/kilo/storage/migration",
      ],
      ".local/share/kilo/log/*.log",
    ],
    why: SETTINGS,
  },
  { agents: ["opencode", "kilo"], what: "copy", names: [".local/share/{opencode,kilo}/log/*.log"], why: LOG },
  { agents: ["opencode", "kilo"], what: "file", names: [".local/share/{opencode,kilo}/snapshot/**"], why: SNAPSHOT },
  {
    agents: ["opencode", "kilo"],
    what: "copy",
    names: [".local/share/{opencode,kilo}/snapshot/**/index"],
    why: SNAPSHOT,
  },
  {
    agents: ["kilo"],
    what: "copy",
    names: [".local/share/kilo/storage/session_diff/*.json"],
    why: "the changed files of a session; dex has each change from its call",
  },
  {
    agents: ["gemini_cli"],
    what: "file",
    names: [".gemini/projects.json", ".gemini/{history,tmp}/*/.project_root"],
    why: "dex reads the folder of a session from them",
  },
  {
    agents: ["copilot"],
    what: "file",
    names: [".cache/copilot/**", ".cache/Microsoft/**"],
    why: OWN_FILES,
  },
  {
    agents: ["copilot"],
    what: "file",
    names: [".copilot/logs/**", ".copilot/settings.json.lock", ".copilot/session-state/**"],
    why: SETTINGS,
  },
  {
    agents: ["copilot"],
    what: "copy",
    names: [".copilot/session-state/*/workspace.yaml"],
    why: "dex reads title and folder of the session from it",
  },
  {
    agents: ["copilot"],
    what: "copy",
    names: [".copilot/session-state/*/rewind-file-snapshots/index.json"],
    why: "the names of files that can be restored; dex has each change from its call",
  },
  {
    agents: ["copilot"],
    what: "copy",
    names: [".copilot/session-store.db"],
    why: "it repeats the events of the sessions, which dex reads",
  },
  {
    agents: ["qwen_code"],
    what: "file",
    names: [
      ...[
        ".qwen/.openai-logs-cleanup-*",
        ".qwen/extension-store/*",
        ".qwen/extensions/*.json",
        ".qwen/output-language.md",
      ],
      ".qwen/usage_record.jsonl",
    ],
    why: SETTINGS,
  },
  {
    agents: ["kimi_code"],
    what: "file",
    names: [
      ...[".kimi-code/cache/**", ".kimi-code/device_id", ".kimi-code/logs/*", ".kimi-code/workspaces.json"],
      ...[
        ".kimi-code/sessions/.index-dirty/*",
        ".kimi-code/sessions/*/*/{logs,notify}/*",
        ".kimi-code/sessions/*/*/state.json",
      ],
    ],
    why: SETTINGS,
  },
  { agents: ["kimi_code"], what: "file", names: [".kimi-code/session_index.jsonl"], why: LIST },
  {
    agents: ["kimi_code"],
    what: "file",
    names: [".kimi-code/file-history/**", ".kimi-code/sessions/*/*/agents/*/file-history/**"],
    why: "contents of files, to restore them; dex has each change from its call",
  },
  {
    agents: ["grok"],
    what: "file",
    names: [".grok/README.md", ".grok/bin/*", ".grok/docs/**", ".grok/models_cache.json"],
    why: OWN_FILES,
  },
  {
    agents: ["grok"],
    what: "file",
    names: [
      ...[".grok/.config-init.lock", ".grok/.metadata_version", ".grok/agent_id", ".grok/*.lock", ".grok/logs/*"],
      ...[".grok/installed-plugins/*.lock", ".grok/sessions/session_search.sqlite", ".grok/sessions/*/*/*.lock"],
      ".grok/sessions/*/*/{events.jsonl,prompt_context.json,signals.json,system_prompt.txt,resources_state.json,title_refresh_idx,tool_definitions.json,usage.json}",
    ],
    why: SETTINGS,
  },
  {
    agents: ["grok"],
    what: "copy",
    names: [
      ".grok/sessions/*/*/{chat_history.jsonl,rewind_points.jsonl,summary.json}",
      ...[".grok/sessions/*/*/terminal/*.log", ".grok/sessions/*/prompt_history.jsonl"],
      ".grok/sessions/session_search.sqlite",
    ],
    why: "they repeat what is in `updates.jsonl`, which dex reads; `summary.json` also names the folder",
  },
  { agents: ["pi"], what: "file", names: [".pi/agent/{auth,models-store}.json"], why: SETTINGS },
  {
    agents: ["cline"],
    what: "file",
    names: [".cline/data/cache/*", ".cline/data/db/teams.db", ".cline/data/locks/**", ".cline/data/logs/*"],
    why: SETTINGS,
  },
  {
    agents: ["cline"],
    what: "copy",
    names: [".cline/data/db/sessions.db", ".cline/data/sessions/*/*.json"],
    why: LIST,
  },
  {
    agents: ["droid"],
    what: "file",
    names: [
      ...[".factory/cache/**", ".factory/certs/*", ".factory/droids/*.md", ".factory/host.json", ".factory/logs/*"],
      ...[".factory/state/*", ".factory/telemetry/*", ".factory/sessions/*/*.settings.json.bak"],
    ],
    why: SETTINGS,
  },
  {
    agents: ["droid"],
    what: "file",
    names: [".factory/sessions/*/*.settings.json"],
    why: "dex reads the tokens of the session from it",
  },
  { agents: ["droid"], what: "copy", names: [".factory/cache/session-discovery-index.json"], why: LIST },
  { agents: ["droid", "continue"], what: "copy", names: [".factory/logs/*", ".continue/logs/cn.log"], why: LOG },
  {
    agents: ["openclaw"],
    what: "file",
    names: [
      ...[".openclaw/agents/*/agent/openclaw-agent.sqlite.*.sqlite", ".openclaw/state/*.sqlite", ".openclaw/tmp/**"],
      ".openclaw/workspace/.git/**",
    ],
    why: SETTINGS,
  },
  {
    agents: ["openclaw"],
    what: "file",
    names: [".openclaw/plugin-skills/**", ".openclaw/workspace/*.md"],
    why: OWN_FILES,
  },
  { agents: ["continue"], what: "file", names: [".continue/permissions.yaml"], why: SETTINGS },
  { agents: ["continue"], what: "file", names: [".continue/sessions/sessions.json"], why: LIST },
]

/** Agents on npm that the canary cannot run, and why. */
export const NOT_RUN: readonly { title: string; package: string; why: string }[] = [
  { title: "Amp", package: "@sourcegraph/amp", why: "it needs an account: every run asks its own server first" },
  { title: "Auggie", package: "@augmentcode/auggie", why: "it needs an account, and its models are on its own server" },
  {
    title: "Crush",
    package: "@charmland/crush",
    why: "its npm package downloads the program from GitHub in an install script, which the canary does not run",
  },
]

const OPENCODE_COLUMNS = {
  session: [
    ...["id", "project_id", "workspace_id", "parent_id", "slug", "directory", "path", "title", "version", "share_url"],
    ...["summary_additions", "summary_deletions", "summary_files", "summary_diffs", "metadata", "cost"],
    ...["tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write", "revert"],
    ...["permission", "agent", "model", "time_created", "time_updated", "time_compacting", "time_archived"],
  ],
  message: ["id", "session_id", "time_created", "time_updated", "data"],
  part: ["id", "message_id", "session_id", "time_created", "time_updated", "data"],
  session_message: ["id", "session_id", "type", "seq", "time_created", "time_updated", "data"],
}

/** The columns of the tables that dex reads, as they were when somebody last looked. What was in one may move to a new one. */
export const KNOWN_COLUMNS: Partial<Record<Agent["name"], Record<string, readonly string[]>>> = {
  opencode: OPENCODE_COLUMNS,
  kilo: OPENCODE_COLUMNS,
  openclaw: {
    transcript_events: [
      ...["session_id", "seq", "event_json", "created_at", "event_zstd", "event_utf8_bytes", "navigation_json"],
    ],
  },
}
