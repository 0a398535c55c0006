// Declares the part of highlight.js that dex uses. The library's own declarations would add the DOM's types to every file.

declare module "highlight.js/lib/languages/*" {
  const define: import("highlight.js").LanguageFn
  export default define
}

declare module "highlight.js" {
  export type LanguageFn = (hljs: unknown) => object
  const hljs: {
    registerLanguage(name: string, define: LanguageFn): void
    registerAliases(aliases: string[], options: { languageName: string }): void
    getLanguage(name: string): object | undefined
    highlight(code: string, options: { language: string; ignoreIllegals?: boolean }): { value: string }
  }
  export default hljs
}
