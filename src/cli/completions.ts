import { sourceIds } from "../agents/index.ts"
import { DexError } from "../core/error.ts"
import type { Tool } from "../core/tool.ts"
import { flagsOf } from "./args.ts"
import type { ListedCommand } from "./other-commands.ts"

/** A completion script, made from the declared commands. */
export function completions(
  shell: string | undefined,
  tools: readonly Tool<never>[],
  every: readonly ListedCommand[],
): string {
  // What begins with a dash is completed as an option.
  const commands = every.flatMap(({ name, aliases = [], summary }) =>
    [name, ...aliases].filter((word) => !word.startsWith("-")).map((word) => ({ word, summary })),
  )
  const words = ({ name, cli }: Tool<never>) => [name, ...(cli.aliases ?? [])]
  const flags = (tool: Tool<never>) => [
    ...flagsOf(tool).map((flag) => `--${flag.name}`),
    ...(tool.cli.paged ? ["--no-pager"] : []),
    "--json",
    "--help",
  ]
  switch (shell) {
    case "bash":
      return `_dex() {
  local word="\${COMP_WORDS[COMP_CWORD]}" last="\${COMP_WORDS[COMP_CWORD-1]}"
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "${commands.map(({ word }) => word).join(" ")}" -- "$word")); return; fi
  case "$last" in
    --source|-s) COMPREPLY=($(compgen -W "${sourceIds.join(" ")}" -- "$word")); return;;
    --format) COMPREPLY=($(compgen -W "full stripped user_only outline" -- "$word")); return;;
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
_dex() {
  if (( CURRENT == 2 )); then
    local -a commands=(${commands.map(({ word, summary }) => quote(`${word}:${summary}`)).join(" ")})
    _describe command commands
    return
  fi
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
          flagsOf(tool).map(
            (flag) =>
              `complete -c dex -n '__fish_seen_subcommand_from ${words(tool).join(" ")}' -l ${flag.name}${flag.schema.type === "boolean" ? "" : " -r"}${flag.schema.enum ? ` -a '${flag.schema.enum.join(" ")}'` : ""}`,
          ),
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

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
