import { getOwn } from '@tallystick/core/kit'
import { configError, type ConfigPlace } from './config-error.ts'
import type { McpHost } from './mcp-host.ts'

/** What variables stand for: everything that an expansion depends on. */
export interface VariableValues {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The folder of the project. */
  readonly folder: string
  /** The folder of the user. */
  readonly home: string
  /** Answers to the `inputs` of VS Code, by their ids. */
  readonly inputs: Readonly<Record<string, string>>
}

/** Replaces the variables of a text in the manner of a host, and keeps which values it put in. */
export interface Expansion {
  text(given: string): string
  /** Values of variables that were put in, by their names. */
  readonly used: ReadonlyMap<string, string>
}

/** How hosts write variables. Claude Desktop and Codex replace none. */
const inBraces = /\$\{(?<name>[^{}$]*)\}/g
const patterns: Readonly<Partial<Record<McpHost, RegExp>>> = {
  'claude-code': inBraces,
  cursor: inBraces,
  vscode: inBraces,
  windsurf: inBraces,
  gemini: /\$(?:\{(?<name>[^{}$]*)\}|(?<bare>[A-Za-z_]\w*))/g,
}

/** Makes the expansion of one server's texts. A variable without a value is a `ConfigurationError` that names it. */
export function expansionOf(host: McpHost, values: VariableValues, place: ConfigPlace): Expansion {
  const used = new Map<string, string>()
  const pattern = patterns[host]
  return {
    used,
    text(given) {
      if (pattern === undefined) return given
      return given.replaceAll(pattern, (...found) => {
        const [whole] = found
        const { name = '', bare } = found.at(-1) as Readonly<Record<string, string | undefined>>
        const { variable, fallback } = bare === undefined ? named(host, name) : { variable: bare }
        // Shells have more ways to write variables, and these hosts leave them as they are.
        if (variable === undefined) return whole
        const value = valueOf(host, variable, values) ?? fallback
        if (value === undefined) throw configError(place, missingText(host, variable))
        used.set(variable, value)
        return value
      })
    },
  }
}

interface NamedVariable {
  readonly variable: string | undefined
  readonly fallback?: string
}

/** Reads what is between the braces: a name, and in two hosts a default after `:-`. */
function named(host: McpHost, name: string): NamedVariable {
  if (host !== 'claude-code' && host !== 'gemini') return { variable: name }
  const at = name.indexOf(':-')
  const variable = at === -1 ? name : name.slice(0, at)
  if (!/^[A-Za-z_]\w*$/.test(variable)) return { variable: undefined }
  return { variable, ...(at !== -1 && { fallback: name.slice(at + 2) }) }
}

function valueOf(
  host: McpHost,
  name: string,
  { env, folder, home, inputs }: VariableValues,
): string | undefined {
  if (host === 'claude-code' || host === 'gemini') return getOwn(env, name)
  if (name.startsWith('env:')) return getOwn(env, name.slice('env:'.length))
  if (host === 'vscode' && name.startsWith('input:')) return getOwn(inputs, name.slice('input:'.length))
  if (host === 'windsurf') return undefined
  switch (name) {
    case 'workspaceFolder':
      return folder
    case 'workspaceFolderBasename':
      return folder.split(/[\\/]/).at(-1)
    case 'userHome':
      return home
    case 'pathSeparator':
    case '/':
      return folder.includes('\\') ? '\\' : '/'
    default:
      return undefined
  }
}

function missingText(host: McpHost, name: string): string {
  const shown = JSON.stringify(name.slice(0, 100))
  if (name.startsWith('input:')) {
    return `the input ${shown} has no value. Give it in inputs, or leave the server out (servers names those to read).`
  }
  const isKnown = host === 'claude-code' || host === 'gemini' || name.startsWith('env:')
  if (!isKnown)
    return `the variable ${shown} is not one that ${host} knows. Write its value, or \${env:NAME}.`
  return `the variable ${shown} is not set. Set it, or leave the server out (servers names those to read).`
}
