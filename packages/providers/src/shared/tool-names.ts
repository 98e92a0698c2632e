import { freeIdentifier, isIdentifier } from './identifier.ts'

/** Tool names as we have them and as a wire accepts them. Both ways; a name that is not known passes as it is. */
export interface ToolNames {
  readonly toWire: (name: string) => string
  readonly fromWire: (wireName: string) => string
}

/** What a wire asks of tool names. */
export interface ToolNameRules {
  readonly lengthMax: number
  /** Wire names that are spoken for, such as those of a vendor's own tools. */
  readonly reserved?: Iterable<string>
}

/**
 * One wire name for each name: unchanged where it fits and is free, else readable with a hash behind it. No two names
 * share one. The order of `names` does not matter, so a request's prefix stays the same while tools come and go.
 */
export function toolNames(names: Iterable<string>, rules: ToolNameRules): ToolNames {
  const fromWire = new Map<string, string>()
  const toWire = new Map<string, string>()
  const reserved = new Set(rules.reserved)
  const taken = { has: (name: string): boolean => reserved.has(name) || fromWire.has(name) }
  const unfit: string[] = []
  for (const name of new Set(names)) {
    if (!isIdentifier(name, rules.lengthMax) || reserved.has(name)) unfit.push(name)
    else fromWire.set(name, name)
  }
  for (const name of unfit.sort()) {
    const wireName = freeIdentifier(name, rules.lengthMax, taken)
    toWire.set(name, wireName)
    fromWire.set(wireName, name)
  }
  return {
    toWire: (name) => toWire.get(name) ?? name,
    fromWire: (wireName) => fromWire.get(wireName) ?? wireName,
  }
}
