import { DexError } from "../core/error.ts"
import type { Tool } from "../core/tool.ts"
import { type Flag, flagsOf } from "./args.ts"
import type { Completed } from "./complete-values.ts"
import { flagsWithForms } from "./forms.ts"
import type { ListedCommand } from "./other-commands.ts"
import { isRetired } from "./retired.ts"

/** Commands whose words name conversations. */
const OF_CONVERSATIONS = ["show", "resume", "handover", "forget"]
/** Options whose values only the history tells, with what tells them. The letters mean the same in every command. */
const OPTIONS: { name: string; words: string; kind: Completed }[] = [
  { name: "project", words: "--project|-p", kind: "projects" },
  { name: "source", words: "--source|-s", kind: "agents" },
]

// Titles and names are anybody's text: no shell reads a value or a description again, and each quotes what it puts on the line.

/** A completion script, made from the declared commands. */
export function completions(
  shell: string | undefined,
  declared: readonly Tool<never>[],
  every: readonly ListedCommand[],
): string {
  const tools = declared.filter(({ name }) => !isRetired(name))
  // What begins with a dash is completed as an option.
  const commands = every.flatMap(({ name, aliases = [], summary }) =>
    [name, ...aliases].filter((word) => !word.startsWith("-")).map((word) => ({ word, summary })),
  )
  const words = ({ name, cli }: Tool<never>) => [name, ...(cli.aliases ?? [])]
  const flags = (tool: Tool<never>) => [
    ...flagsWithForms(tool, declared).map((flag) => `--${flag.name}`),
    ...(tool.cli.paged ? ["--no-pager"] : []),
    "--json",
    "--help",
  ]
  const namesConversations = ({ name }: Tool<never>) => OF_CONVERSATIONS.includes(name)
  switch (shell) {
    case "bash":
      return `__dex_values() {
  local value title
  while IFS=$'\\t' read -r value title; do
    case "$value" in "$word"*) printf -v value %q "$value"; COMPREPLY+=("$value");; esac
  done < <(dex completions --values "$1" "$word" 2>/dev/null)
  compopt -o nosort 2>/dev/null
}
_dex() {
  local word="\${COMP_WORDS[COMP_CWORD]}" last="\${COMP_WORDS[COMP_CWORD-1]}"
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "${commands.map(({ word }) => word).join(" ")}" -- "$word")); return; fi
  case "$last" in
${OPTIONS.map(({ words, kind }) => `    ${words}) COMPREPLY=(); __dex_values ${kind}; return;;`).join("\n")}
    --format)
      case "\${COMP_WORDS[1]}" in
${tools.flatMap((tool) => formatsOf(tool).map((formats) => `        ${words(tool).join("|")}) COMPREPLY=($(compgen -W "${formats}" -- "$word"));;`)).join("\n")}
      esac
      return;;
  esac
  case "$word" in -*) ;; *)
    case "\${COMP_WORDS[1]}" in
      ${tools.filter(namesConversations).flatMap(words).join("|")}) COMPREPLY=(); __dex_values refs; return;;
    esac;;
  esac
  case "\${COMP_WORDS[1]}" in
${tools.map((tool) => `    ${words(tool).join("|")}) COMPREPLY=($(compgen -W "${flags(tool).join(" ")}" -- "$word"));;`).join("\n")}
    completions) COMPREPLY=($(compgen -W "bash zsh fish" -- "$word"));;
  esac
}
complete -o default -F _dex dex
`
    case "zsh":
      return `#compdef dex
_dex_values() {
  local -a values shown
  local value title
  while IFS=$'\\t' read -r value title; do
    values+=("$value")
    shown+=("$value  $title")
  done < <(dex completions --values "$1" "$PREFIX" 2>/dev/null)
  compadd -l -V dex -d shown -a values
}
_dex() {
  if (( CURRENT == 2 )); then
    local -a commands=(${commands.map(({ word, summary }) => quote(`${word}:${summary}`)).join(" ")})
    _describe command commands
    return
  fi
  case "\${words[CURRENT-1]}" in
${OPTIONS.map(({ words, kind }) => `    ${words}) _dex_values ${kind}; return;;`).join("\n")}
  esac
  case "$PREFIX" in -*) ;; *)
    case "\${words[2]}" in
      ${tools.filter(namesConversations).flatMap(words).join("|")}) _dex_values refs; return;;
    esac;;
  esac
  case "\${words[2]}" in
${tools.map((tool) => `    ${words(tool).join("|")}) compadd -- ${flags(tool).join(" ")};;`).join("\n")}
    completions) compadd bash zsh fish;;
  esac
}
compdef _dex dex
`
    case "fish":
      return `${[
        "complete -c dex -f",
        ...commands.map(
          ({ word, summary }) => `complete -c dex -n __fish_use_subcommand -a ${word} -d ${quote(summary)}`,
        ),
        ...tools.flatMap((tool) =>
          flagsWithForms(tool, declared).map(
            (flag) =>
              `complete -c dex -n '__fish_seen_subcommand_from ${words(tool).join(" ")}' -l ${flag.name}${flag.schema.type === "boolean" ? "" : " -r"}${fishValues(flag)}`,
          ),
        ),
        ...tools
          .filter(namesConversations)
          .map(
            (tool) => `complete -c dex -n '__fish_seen_subcommand_from ${words(tool).join(" ")}'${fishAsks("refs")}`,
          ),
        ...tools
          .filter((tool) => tool.cli.paged)
          .map((tool) => `complete -c dex -n '__fish_seen_subcommand_from ${words(tool).join(" ")}' -l no-pager`),
        `complete -c dex -n '__fish_seen_subcommand_from completions' -a 'bash zsh fish'`,
      ].join("\n")}\n`
    default:
      throw new DexError(
        "usage",
        "Which shell? dex completions bash | zsh | fish. For bash: dex completions bash >> ~/.bashrc",
      )
  }
}

/** What `--format` takes in this command; empty where it has none. */
function formatsOf(tool: Tool<never>): string[] {
  return flagsOf(tool).flatMap(({ name, schema }) => (name === "format" && schema.enum ? [schema.enum.join(" ")] : []))
}

function fishValues({ name, schema }: Flag): string {
  const option = OPTIONS.find((one) => one.name === name)
  if (option) return fishAsks(option.kind)
  return schema.enum ? ` -a '${schema.enum.join(" ")}'` : ""
}

/** In the order in which they come. */
function fishAsks(kind: Completed): string {
  return ` -k -a '(dex completions --values ${kind} (commandline -ct) 2>/dev/null)'`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
