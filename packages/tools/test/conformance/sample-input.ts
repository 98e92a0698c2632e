import type { JsonObject } from '@tallystick/core/vocabulary'

/** An input that fits a simple schema. */
export function sampleInput({ properties = {}, required = [] }: JsonObject): JsonObject {
  const names = required as readonly string[]
  const kinds = properties as Readonly<Record<string, { readonly type?: string }>>
  return Object.fromEntries(
    names.map((name) => {
      switch (kinds[name]?.type) {
        case 'number':
        case 'integer':
          return [name, 2]
        case 'boolean':
          return [name, true]
        case undefined:
        default:
          return [name, 'a text']
      }
    }),
  )
}
