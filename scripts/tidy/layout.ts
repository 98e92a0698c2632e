// The folders of the packages, and which may import which: stated here, and nowhere else.

/** The packages whose exports the sources of a package may import. A package without an entry may import all of them. */
export const packageArrows: Readonly<Record<string, readonly string[]>> = {
  core: [],
  providers: ['core'],
  ledger: ['core'],
  replay: ['core', 'ledger'],
  tools: ['core'],
}

/**
 * The folders below the sources of a package, from the ground up: the files of a folder import each other and the folders
 * that stand before theirs. The files right below the sources may import every folder, and no folder imports them.
 */
export const foldersOf: Readonly<Record<string, readonly string[]>> = {
  core: [
    ...[
      'vocabulary/values',
      'vocabulary/secrets',
      'vocabulary/billing',
      'vocabulary/limits',
      'vocabulary/model',
    ],
    ...['vocabulary', 'vocabulary/options', 'vocabulary/signals', 'vocabulary/agent', 'vocabulary/events'],
    'ports',
    ...[
      'machine/messages',
      'machine/state',
      'machine/limits',
      'machine/prompt',
      'machine/next',
      'machine/fold',
    ],
    ...['machine/decide', 'machine/laws', 'machine'],
    'memory-ledger',
    ...['runtime/agent', 'runtime/definition', 'runtime/reading', 'runtime/children', 'runtime/commands'],
    ...['runtime/session', 'runtime/fork', 'runtime/effects', 'runtime/drive', 'runtime/run'],
    ...['testing/hostile', 'testing/judges', 'testing/samples', 'testing/contract', 'testing/contract-reads'],
    ...['testing/contract-writes', 'testing/doubles', 'testing/simulation', 'testing'],
  ],
  ledger: [
    ...['content/payload', 'record', 'content/event', 'read', 'removal', 'checkpoint'],
    ...[
      'projection/tables',
      'projection/snapshot',
      'projection/summary',
      'projection/refresh',
      'projection/stats',
    ],
    ...['verify', 'transfer', 'contract'],
    ...['sqlite/migrations', 'sqlite/schema', 'sqlite/connection', 'sqlite/rows', 'sqlite/write', 'sqlite'],
    ...[
      'postgres/connection',
      'postgres/migrations',
      'postgres/schema',
      'postgres/rows',
      'postgres/write',
      'postgres',
    ],
  ],
  replay: ['diff', 'explain', 'replay', 'regression'],
  providers: [
    ...['shared/json', 'shared/secrets', 'shared/failure', 'shared/options', 'shared/client'],
    ...['shared/request', 'shared/reply', 'shared/stream'],
    ...['anthropic/client', 'anthropic/options', 'anthropic/request', 'anthropic/reply', 'anthropic'],
    ...['ollama/client', 'ollama/options', 'ollama/request', 'ollama/reply', 'ollama'],
    ...['ai-sdk/client', 'ai-sdk/options', 'ai-sdk/request', 'ai-sdk/reply', 'ai-sdk'],
    ...['openai/client', 'openai/options', 'openai/request', 'openai/reply', 'openai'],
    ...['openai-chat/client', 'openai-chat/options', 'openai-chat/request', 'openai-chat/reply'],
    'openai-chat',
    ...['openai-responses/client', 'openai-responses/options', 'openai-responses/request'],
    ...['openai-responses/reply', 'openai-responses'],
    ...['prices', 'recording/file', 'recording', 'contract'],
  ],
  tools: [
    ...['content', 'input', 'execution', 'approval', 'definition'],
    ...['built-in', 'built-in/calculator', 'built-in/http-fetch', 'built-in/sql-query'],
  ],
  cli: [
    ...['terminal', 'command', 'view/text', 'ledger', 'runs', 'view/run', 'view/list', 'attend', 'config'],
    ...['verbs/complete', 'verbs/check', 'verbs/decide', 'verbs/drive', 'verbs/inspect', 'verbs/retention'],
    ...['verbs/transfer', 'verbs/watch'],
  ],
}

/** Folders that may import less than what stands before them, by the beginnings of what they may import. */
export const keptApart: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  core: {
    machine: ['vocabulary', 'machine'],
    'memory-ledger': ['vocabulary', 'ports', 'machine'],
    'testing/judges': ['vocabulary'],
    'testing/hostile': [],
  },
  ledger: { sqlite: ['content', 'record', 'read', 'removal', 'projection', 'sqlite'], contract: [] },
  providers: {
    anthropic: ['shared', 'anthropic'],
    ollama: ['shared', 'ollama'],
    // The AI SDK passes Anthropic's own report of tokens on.
    'ai-sdk': ['shared', 'anthropic/reply', 'ai-sdk'],
    openai: ['shared', 'openai'],
    'openai-chat': ['shared', 'openai', 'openai-chat'],
    'openai-responses': ['shared', 'openai', 'openai-responses'],
    prices: ['shared/client'],
    recording: ['shared/json', 'shared/secrets', 'recording'],
    contract: [],
  },
}

/** The most files of a folder, tests and generated migrations aside. */
export const filesMax = 12
