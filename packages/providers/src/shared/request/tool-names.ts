import type { ModelRequest } from '@tallystick/core'
import type { Warning } from '../options/warning.ts'
import { freeIdentifier } from './identifier.ts'

/** Tool names as we have them and as a wire accepts them. Both ways; a name that is not known passes as it is. */
export interface ToolNames {
  readonly toWire: (name: string) => string
  readonly fromWire: (wireName: string) => string
}

/** What a wire asks of tool names. */
export interface ToolNameRules {
  readonly maxLength: number
  /** What a name of any length may look like, where that is more than letters, digits, `_` and `-`. */
  readonly pattern?: RegExp
  /** Wire names that are spoken for, such as those of a vendor's own tools. */
  readonly reserved?: Iterable<string>
}

const identifier = /^[a-zA-Z0-9_-]+$/
/** For servers that take every name: what a model can write without a doubt where the name ends. */
export const anyWord: RegExp = /^[^\s\p{C}"'`<>{}()[\],;]+$/u

/**
 * One wire name for each name: unchanged where it fits and is free, else readable with a hash after it. No two names
 * share one. The order of `names` does not matter, so a request's prefix stays the same while tools come and go.
 */
export function toolNames(names: Iterable<string>, rules: ToolNameRules): ToolNames {
  const fromWire = new Map<string, string>()
  const toWire = new Map<string, string>()
  const { maxLength, pattern = identifier } = rules
  const reserved = new Set(rules.reserved)
  const taken = { has: (name: string): boolean => reserved.has(name) || fromWire.has(name) }
  const fits = (name: string): boolean => name.length <= maxLength && pattern.test(name)
  const unfit: string[] = []
  for (const name of new Set(names)) {
    if (!fits(name) || reserved.has(name)) unfit.push(name)
    else fromWire.set(name, name)
  }
  for (const name of unfit.sort()) {
    const wireName = [name, `_${name}`].map((text) => freeIdentifier(text, maxLength, taken)).find(fits)!
    toWire.set(name, wireName)
    fromWire.set(wireName, name)
  }
  return {
    toWire: (name) => toWire.get(name) ?? name,
    fromWire: (wireName) => fromWire.get(wireName) ?? wireName,
  }
}

/** Warns about each tool that a request offers under another name than its own: the model sees only that other name. */
export function warnOfNames(
  { tools }: Pick<ModelRequest, 'tools'>,
  { toWire }: ToolNames,
  warn: (warning: Warning & { readonly what: 'tool_name' }) => void,
): void {
  for (const { name } of tools) {
    const wireName = toWire(name)
    if (wireName === name) continue
    const message = `The tool ${JSON.stringify(name)} is offered to the model as ${wireName}: its own name is not one that the vendor takes, or is that of another tool.`
    warn({ what: 'tool_name', message })
  }
}
