import { ConfigurationError } from '@tallystick/core'

const known = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** A request method. */
export type Method = (typeof known)[number]

/** Whether any of the methods may change something. */
export function writes(methods: readonly Method[]): boolean {
  return methods.some((method) => method !== 'GET' && method !== 'HEAD')
}

/** The methods that a tool was given. Throws `ConfigurationError` for none, or an unknown one. */
export function methodsOf(toolName: string, methods: readonly Method[]): readonly [Method, ...Method[]] {
  const [first, ...others] = methods
  const unknown = methods.find((method) => !known.includes(method))
  if (first !== undefined && unknown === undefined) return [first, ...others]
  throw new ConfigurationError(
    `The tool ${toolName} has ${unknown === undefined ? 'no method' : `the unknown method ${unknown}`}. Use some of ${known.join(', ')}.`,
  )
}
