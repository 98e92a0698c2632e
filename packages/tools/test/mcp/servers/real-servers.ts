import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { StdioServer } from '@tallystick/tools/mcp'
import { temporaryFolder } from '../../../../../scripts/testing/temporary-folder.ts'

const require = createRequire(import.meta.url)

/** Has Node cache the code of a server, which gets no variable that says so. */
const cachesCode = `data:text/javascript,${encodeURIComponent(
  `import { enableCompileCache } from 'node:module'; enableCompileCache(${JSON.stringify(process.env['NODE_COMPILE_CACHE'])})`,
)}`

/** A server that others wrote, by the name of its package without `@modelcontextprotocol/server-`. */
export function realServer(
  name: string,
  args: readonly string[] = [],
  more: Partial<StdioServer> = {},
): StdioServer {
  const path = require.resolve(`@modelcontextprotocol/server-${name}/dist/index.js`)
  return { command: process.execPath, args: [path, ...args], ...more }
}

/** A server of this folder, as a process. */
export function ownServer(
  file: string,
  args: readonly string[] = [],
  more: Partial<StdioServer> = {},
): StdioServer {
  const path = fileURLToPath(new URL(file, import.meta.url))
  return {
    command: process.execPath,
    args: ['--no-warnings', '--import', cachesCode, path, ...args],
    ...more,
  }
}

/** A server that answers each method with a result that is given, whatever that is, and no other method. */
export function rawServer(
  results: Readonly<Record<string, unknown>>,
  more: Partial<StdioServer> = {},
): StdioServer {
  const folder = temporaryFolder()
  const file = join(folder, 'results.json')
  writeFileSync(file, JSON.stringify(results))
  return ownServer('raw-server.ts', [file], more)
}
