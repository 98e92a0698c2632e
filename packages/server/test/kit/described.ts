import { createRuntime, memoryLedger } from '@tallystick/core'
import { createServer, type ServerOptions } from '@tallystick/server'

/** What a kind of body looks like. */
export interface Media {
  readonly schema: { readonly required?: readonly string[]; readonly $ref?: string }
  readonly example?: Record<string, unknown>
}

/** An operation as the document of a server describes it. */
export interface DescribedOperation {
  readonly operationId: string
  readonly parameters: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, Media>> }>>
}

/** The OpenAPI document of a server. */
export interface Document {
  readonly openapi: string
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

/** What a server without callers of its own answers. */
export async function documentAt(basePath: string, more: Partial<ServerOptions> = {}): Promise<Document> {
  const ledger = memoryLedger()
  const runtime = createRuntime({ ledger, agents: [] })
  const server = createServer({ runtime, agents: [], basePath, ...more })
  const headers = { authorization: `Bearer ${server.token}` }
  const response = await server.fetch(new Request(`http://localhost${basePath}/openapi.json`, { headers }))
  return (await response.json()) as Document
}

/** An operation with its place. */
export interface Described {
  readonly path: string
  readonly method: string
  readonly operation: DescribedOperation
}

/** Every operation of a document. */
export function operationsOf({ paths }: Document): readonly Described[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  )
}

/** The example of the body of an operation. */
export function exampleOf({ requestBody }: DescribedOperation): Record<string, unknown> | undefined {
  return Object.values(requestBody?.content ?? {})[0]?.example
}
