import type { LanguageId } from "../languages.ts"
import { go } from "./go.ts"
import type { Grammar } from "./grammar.ts"
import { bash, cpp, csharp, java, php, powershell, ruby, rust } from "./others.ts"
import { python } from "./python.ts"
import { javascript, tsx, typescript } from "./typescript.ts"

export const GRAMMARS: Record<LanguageId, Grammar> = {
  ...{ typescript, tsx, javascript, python, go },
  ...{ rust, java, csharp, cpp, php, ruby, bash, powershell },
}
