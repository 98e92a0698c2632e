import { digestOf } from '@tallystick/core/vocabulary'

/** The longest name that every model's API takes. */
const maxLength = 64
const hashLength = 8
/** Characters of a server's name that stay where the whole is too long: the tool's own name says more. */
const maxServerLength = 20

/**
 * The name that models call a server's tool by: `mcp__server__tool`, of letters, digits, `_` and `-`, 64 characters at
 * most. Where that would lose something (a character, the end of a name, where the server's name ends), it is cut and ends
 * in eight digits of a hash over both names, so that no two tools share a name. It is the same in every process, and says
 * nothing about the way back: `origin` of the tool does.
 */
export function exposedName(server: string, tool: string): string {
  const plain = `mcp__${server}__${tool}`
  if (plain.length <= maxLength && isLossless(server, tool)) return plain
  const readable = `mcp__${readableName(server).slice(0, maxServerLength)}__${readableName(tool)}`
  const hash = digestOf([server, tool]).slice(0, hashLength)
  return `${readable.slice(0, maxLength - hashLength - 1)}_${hash}`
}

/** Whether the plain name can be of no other tool: its first `__` ends the server's name, and it ends in no hash. */
function isLossless(server: string, tool: string): boolean {
  const isPlain = /^[\w-]+$/.test(server) && /^[\w-]+$/.test(tool)
  return isPlain && !server.includes('__') && !server.endsWith('_') && !/_[0-9a-f]{8}$/.test(`_${tool}`)
}

function readableName(name: string): string {
  return name.slice(0, maxLength).replaceAll(/[^\w-]/g, '_')
}
