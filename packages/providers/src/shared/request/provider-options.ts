import type { ModelRequest } from '@tallystick/core'
import { isJsonObject, getOwn } from '@tallystick/core/kit'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'

/** What decides which of a request's provider options go into a body. */
export interface OwnFields {
  /** By whose name the options go. */
  readonly provider: string
  /** Fields of the body that only the adapter may write: otherwise no reply could be read. */
  readonly held: readonly string[]
  readonly warn: (warning: { readonly what: 'model_settings'; readonly message: string }) => void
}

/** A body with the options that its request holds for its provider. */
export function withProviderOptions<Body extends object>(
  body: Body,
  { modelSettings }: ModelRequest,
  { provider, held, warn }: OwnFields,
): Body {
  const all = modelSettings?.providerOptions ?? {}
  const given = Object.entries(getOwn(all, provider) ?? {})
  for (const [name] of given.filter(([field]) => held.includes(field))) {
    const message = `The provider option ${name} was left out: only the adapter may write that field of the request.`
    warn({ what: 'model_settings', message })
  }
  return withOptions(body, Object.fromEntries(given.filter(([field]) => !held.includes(field))))
}

/** A body with options over it: objects go into each other, anything else takes the place of what was there. */
export function withOptions<Body extends object>(body: Body, options: JsonObject): Body {
  const entries = Object.entries(options).map(([name, value]): [string, unknown] => [
    name,
    laidOver((body as { readonly [name: string]: Json | undefined })[name], value),
  ])
  return { ...body, ...Object.fromEntries(entries) }
}

function laidOver(below: Json | undefined, above: Json): Json {
  return isJsonObject(below) && isJsonObject(above) ? withOptions(below, above) : above
}
