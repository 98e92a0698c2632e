// The folders of the packages, and which may import which: stated here, and nowhere else.

import { readdirSync } from 'node:fs'

/** The packages whose exports the sources of a package may import. A package without an entry may import all of them. */
export const packageArrows: Readonly<Record<string, readonly string[]>> = {
  core: [],
  providers: ['core'],
  ledger: ['core'],
  replay: ['core', 'ledger'],
  tools: ['core'],
  server: ['core', 'ledger'],
  otel: ['core'],
}

/** What an adapter imports of another one. Every other adapter imports only itself and what all share. */
const builtOn: Readonly<Record<string, readonly string[]>> = {
  // The AI SDK passes Anthropic's own report of tokens on.
  'ai-sdk': ['anthropic/reply'],
  'openai-chat': ['openai'],
  'openai-responses': ['openai'],
}

/** The folders of `providers` that are no adapter. */
const besideAdapters = ['shared', 'prices', 'recording', 'contract']

/** The adapters, by the names of their folders; one that imports another one comes after it. */
const adapters: readonly string[] = readdirSync(new URL('../../packages/providers/src', import.meta.url), {
  withFileTypes: true,
})
  .flatMap((entry) => (entry.isDirectory() && !besideAdapters.includes(entry.name) ? [entry.name] : []))
  .toSorted((a, b) => Number(a in builtOn) - Number(b in builtOn) || a.localeCompare(b))

function foldersOfAdapter(name: string): readonly string[] {
  return [...['client', 'options', 'request', 'reply'].map((part) => `${name}/${part}`), name]
}

/** The adapters by the one that they are built on, or by themselves: these share an area of mutants. */
export const adapterFamilies: ReadonlyMap<string, readonly string[]> = Map.groupBy(
  adapters,
  (name) => builtOn[name]?.find((base) => adapters.includes(base)) ?? name,
)

/**
 * The folders below the sources of a package, from the ground up: the files of a folder import each other and the folders
 * that come before theirs. The files right below the sources may import every folder, and no folder imports them.
 */
export const foldersOf: Readonly<Record<string, readonly string[]>> = {
  core: [
    'vocabulary/zod',
    'vocabulary/values',
    'vocabulary/secrets',
    'vocabulary/billing',
    'vocabulary/limits',
    'vocabulary/model',
    'vocabulary',
    'vocabulary/options',
    'vocabulary/signals',
    'vocabulary/agent',
    'vocabulary/events',
    'ports',
    'machine/messages',
    'machine/state',
    'machine/limits',
    'machine/prompt',
    'machine/next',
    'machine/fold',
    'machine/decide',
    'machine/recover',
    'machine/laws',
    'machine',
    'memory-ledger',
    'runtime/output',
    'runtime/schema',
    'runtime/agent',
    'runtime/definition',
    'runtime/reading',
    'runtime/commands',
    'runtime/session',
    'runtime/children',
    'runtime/fork',
    'runtime/checks',
    'runtime/effects',
    'runtime/drive',
    'runtime/coordinator',
    'runtime/run',
    'testing/hostile',
    'testing/judges',
    'testing/samples',
    'testing/contract',
    'testing/contract-reads',
    'testing/contract-writes',
    'testing/contract-drivers',
    'testing/doubles',
    'testing/simulation',
    'testing',
  ],
  ledger: [
    'content/payload',
    'record/segments',
    'record',
    'content/event',
    'append',
    'versions',
    'read',
    'removal',
    'checkpoint',
    'projection/tables',
    'projection/snapshot',
    'projection/summary',
    'projection/refresh',
    'projection/stats',
    'verify',
    'transfer',
    'contract',
    'sqlite/migrations',
    'sqlite/schema',
    'sqlite/connection',
    'sqlite/rows',
    'sqlite/write',
    'sqlite',
    'postgres/connection',
    'postgres/migrations',
    'postgres/schema',
    'postgres/rows',
    'postgres/write',
    'postgres',
  ],
  replay: ['diff', 'explain', 'replay', 'regression'],
  providers: [
    'shared/json',
    'shared/secrets',
    'shared/failure',
    'shared/options',
    'shared/client',
    'shared/request',
    'shared/reply',
    'shared/stream',
    ...adapters.flatMap(foldersOfAdapter),
    'prices',
    'recording/file',
    'recording',
    'contract',
  ],
  tools: [
    'content',
    'input',
    'execution',
    'approval',
    'policy',
    'repair',
    'definition',
    'search',
    'toolkit',
    'built-in',
    'built-in/calculator',
    'built-in/http-fetch/markdown',
    'built-in/http-fetch',
    'built-in/sql-query/answer',
    'built-in/sql-query/sqlite',
    'built-in/sql-query/postgres',
    'built-in/sql-query',
    'built-in/memory',
    'built-in/files/names',
    'built-in/files/root',
    'built-in/files/text',
    'built-in/files/tools',
    'built-in/files',
    'built-in/skills',
    'built-in/shell',
    'mcp/text',
    'mcp/names',
    'mcp/options',
    'mcp/config',
    'mcp/transport',
    'mcp/listing',
    'mcp/connection',
    'mcp/oauth',
    'mcp/manager',
    'mcp/serve',
  ],
  server: [
    'http',
    'access',
    'stream',
    'runs',
    'protocols',
    'facade',
    'a2a',
    'openapi',
    'routes',
    'protocol-routes',
    'supervise',
    'server',
    'node',
  ],
  otel: ['conventions', 'span', 'content', 'projection', 'otlp', 'live'],
  cli: [
    'terminal',
    'command',
    'view/text',
    'ledger',
    'runs',
    'view/run',
    'view/list',
    'lookup',
    'interactive',
    'config',
    'verbs/complete',
    'verbs/check',
    'verbs/decide',
    'verbs/drive',
    'verbs/inspect',
    'verbs/mcp',
    'verbs/retention',
    'verbs/transfer',
    'verbs/watch',
  ],
}

/** Folders that may import less than the folders before them, by the beginnings of what they may import. */
export const keptApart: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  core: {
    machine: ['vocabulary', 'machine'],
    'memory-ledger': ['vocabulary', 'ports', 'machine'],
    'testing/judges': ['vocabulary'],
    'testing/hostile': [],
  },
  ledger: {
    sqlite: ['append', 'content', 'record', 'versions', 'read', 'removal', 'projection', 'sqlite'],
    contract: [],
  },
  providers: {
    ...Object.fromEntries(adapters.map((name) => [name, ['shared', ...(builtOn[name] ?? []), name]])),
    prices: ['shared/client'],
    recording: ['shared/json', 'shared/secrets', 'recording'],
    contract: [],
  },
}

/** The most files of a folder, tests and generated migrations aside. */
export const maxFiles = 12
