/** Settings as people and agents really write them. Each is a separate file for one of the editors. */
export const JSON_FILES: Record<string, string> = {
  "two spaces": '{\n  "theme": "dark",\n  "verbose": true\n}\n',
  "four spaces":
    '{\n    "theme": "dark",\n    "mcpServers": {\n        "other": {\n            "command": "x"\n        }\n    }\n}\n',
  tabs: '{\n\t"theme": "dark",\n\t"mcpServers": {\n\t\t"other": { "command": "x" }\n\t}\n}\n',
  CRLF: '{\r\n  "theme": "dark",\r\n  "mcpServers": {\r\n    "other": {\r\n      "command": "x"\r\n    }\r\n  }\r\n}\r\n',
  "no newline at the end": '{\n  "a": 1\n}',
  "on one line": '{"a":1,"b":[1,2,{"c":"}"}]}',
  "on one line with an empty place": '{"mcpServers":{},"hooks":{"SessionStart":[]}}',
  "empty object": "{}",
  "empty object with room": "{\n\n}\n",
  "empty file": "",
  "blank file": "\n  \n",
  "only a comment": "// nothing yet\n",
  "line comments": '{\n  // first\n  "a": 1, // after a\n  "b": 2 // after b, no comma\n  // before the end\n}\n',
  "block comments": '/* top */ {\n  "a": /* in */ 1 /* after */,\n  /* own line */\n  "b": 2 /* tail */\n} /* end */\n',
  "trailing commas": '{\n  "list": [1, 2,],\n  "mcpServers": {\n    "other": { "command": "x", },\n  },\n}\n',
  "trailing comma and comment": '{\n  "a": 1, // last\n}\n',
  "comment in an empty place": '{\n  "mcpServers": {\n    // none so far\n  }\n}\n',
  "ours comes first by order": '{\n  "mcpServers": { "other": { "command": "x" } },\n  "z": 1,\n  "a": 2\n}\n',
  "keys with brackets and quotes": '{\n  "}{": "\\"{[",\n  "mcp\\u0053ervers": { "o": { "command": "\\\\" } }\n}\n',
  "a byte order mark": '\ufeff{\n  "a": 1\n}\n',
  "closing brace on the last line": '{ "a": 1,\n  "b": 2 }\n',
  "hooks of somebody else":
    '{\n  "hooks": {\n    "SessionStart": [\n      { "hooks": [{ "type": "command", "command": "mine" }] }\n    ],\n    "Stop": []\n  }\n}\n',
  "deep nesting": `{\n  "deep": ${'{"x":['.repeat(30)}1${"]}".repeat(30)}\n}\n`,
  "a key twice": '{\n  "mcpServers": {},\n  "mcpServers": { "other": { "command": "x" } }\n}\n',
  "wide characters": '{\n  "名前": "ünïcødé 🦊",\n  "mcpServers": {\n    "日本": { "command": "x" }\n  }\n}\n',
}

export const TOML_FILES: Record<string, string> = {
  plain: 'model = "x"\napproval_policy = "never"\n\n[analytics]\nenabled = false\n',
  CRLF: 'model = "x"\r\n\r\n[analytics]\r\nenabled = false\r\n',
  "no newline at the end": 'model = "x"',
  "no newline at the end, CRLF": 'a = 1\r\nmodel = "x"',
  empty: "",
  "only comments": "# model = 1\n\n# [mcp_servers.dex]\n",
  "another server": '[mcp_servers.demo]\ncommand = "node"\nargs = [\n  "a", # one\n  "]",\n]\nenv = { A = "}" }\n',
  "long strings": 'a = """\n[mcp_servers.dex]\ncommand = "no"\n"""\nb = \'\'\'\n# " not a comment\n\'\'\'\n',
  "quoted names": '[ projects . "/home/me/a.b" ]\ntrust_level = "trusted"\n"odd key" = 1\n',
  "lists of tables": "[[x]]\na = 1\n[[x]]\na = 2 # two\n\n\n",
  "dotted servers": 'mcp_servers.other.command = "x"\n',
}
