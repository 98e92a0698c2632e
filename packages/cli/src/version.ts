import { readFileSync } from 'node:fs'

/** The oldest Node that can run the command: SQLite's native part calls a Node-API that came with it. */
const nodeMin = [22, 14] as const

/**
 * Returns why this host cannot run the command; `undefined` if it can. Loaded before everything else, since an older
 * Node cannot load the rest. Hosts that are not Node (Deno, Bun) are not checked.
 */
export function findVersionFault(versions: {
  readonly node?: string
  readonly deno?: string
  readonly bun?: string
}): string | undefined {
  const { node = '0', deno, bun } = versions
  if (deno !== undefined || bun !== undefined) return undefined
  const [major = 0, minor = 0] = node.split('.').map(Number)
  if (major > nodeMin[0] || (major === nodeMin[0] && minor >= nodeMin[1])) return undefined
  return `tallystick needs Node ${nodeMin.join('.')} or newer, and this is Node ${node}. Install the current LTS from nodejs.org, or run it once with: npx -p node@24 -p @tallystick/cli tallystick`
}

export function readOwnVersion(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { readonly version: string }).version
}
