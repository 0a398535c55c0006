import type { Shown } from "./limits.ts"

/** How much a tool's output is worth; undefined where its size says enough. */
export function outputKind(tool: string): Shown | undefined {
  const name = tool.toLowerCase()
  if (/^(bash|shell|local_shell|exec|exec_command|run_shell_command|run_terminal_cmd|bashoutput)$/.test(name))
    return "command_output"
  if (/^(read|read_file|read_many_files|view|view_image|notebookread)$/.test(name)) return undefined
  if (/^(edit|multiedit|write|write_file|apply_patch|replace|str_replace|edit_file|notebookedit|todowrite)$/.test(name))
    return undefined
  if (/^(glob|grep|ls|list|list_dir|list_directory|search_file_content|codebase_search|file_search)$/.test(name))
    return "found_files"
  if (/^(webfetch|websearch|web_fetch|web_search|google_web_search|fetch)$/.test(name)) return "web_output"
  return /^(task|agent|taskoutput|spawn_agent)$/.test(name) ? "task_output" : "other_output"
}
