import { isJsonObject } from '@tallystick/core/kit'
import type { Citation, Json, JsonObject, Source } from '@tallystick/core/vocabulary'
import { itemsOf, numberAt, objectAt, textAt } from '../../shared/json/json-reading.ts'
import { known } from '../../shared/reply/known-citations.ts'

/**
 * Returns the citations in the annotations of a text. On the wire of chats their fields are in an object of their own.
 */
export function citationsIn(annotations: Json | undefined): readonly Citation[] {
  return itemsOf(annotations).flatMap((one) => {
    const fields = objectAt(one, textAt(one, 'type') ?? '') ?? one
    if (!isJsonObject(fields)) return []
    const [url, fileId] = [textAt(fields, 'url'), textAt(fields, 'file_id')]
    if (url === undefined && fileId === undefined) return []
    return [citationOf(fields, url, fileId)]
  })
}

function citationOf(fields: JsonObject, url: string | undefined, fileId: string | undefined): Citation {
  const [from, to] = [numberAt(fields, 'start_index'), numberAt(fields, 'end_index')]
  return known<Citation>({
    url,
    fileId,
    title: textAt(fields, 'title') ?? textAt(fields, 'filename'),
    quote: textAt(fields, 'quote') ?? textAt(fields, 'content'),
    pages: undefined,
    place: placeOf(from, to),
  })
}

/** Some servers say 0 and 0 where they do not know. */
function placeOf(from: number | undefined, to: number | undefined): Citation['place'] {
  if (from === undefined || to === undefined || !Number.isInteger(from) || !Number.isInteger(to))
    return undefined
  return from >= 0 && to > from ? { from, to } : undefined
}

/** What a search of the vendor's found: on the web, or in files. */
export function sourcesIn(item: JsonObject): readonly Source[] {
  const found = [...itemsOf(objectAt(item, 'action')?.['sources']), ...itemsOf(item['results'])]
  return sourcesOf(found)
}

/** Addresses as some servers list them beside a reply: as texts, or as objects. */
export function sourcesOf(found: readonly Json[]): readonly Source[] {
  return found.flatMap((one) => {
    const url = typeof one === 'string' ? one : textAt(one, 'url')
    const fileId = textAt(one, 'file_id')
    if (url === undefined && fileId === undefined) return []
    return [known<Source>({ url, fileId, title: textAt(one, 'title') ?? textAt(one, 'filename') })]
  })
}
