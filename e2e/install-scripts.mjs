/** The install scripts of the two packages that need one for their native program. No other install script is run. */
export const INSTALL_SCRIPTS = ["@anthropic-ai/claude-code/install.cjs", "opencode-ai/postinstall.mjs"]
