import type { Citation, Json, JsonObject, Source } from '@tallystick/core/vocabulary'
import { itemsOf, numberAt, objectAt, textAt } from '../../shared/json/json-reading.ts'
import { known } from '../../shared/reply/known-citations.ts'

/** What a text cites, in the words of the ledger. Version 3 says only what was found. */
export function citationsIn(citations: Json | undefined): readonly Citation[] {
  return itemsOf(citations).flatMap((one) => {
    const source = objectAt(one, 'source')
    if (source === undefined) return []
    const [from, to] = [numberAt(one, 'startIndex'), numberAt(one, 'endIndex')]
    const place = from === undefined || to === undefined || to <= from ? undefined : { from, to }
    const quote = textAt(one, 'citedText')
    return sourcesIn(source).map((found) => ({
      ...found,
      ...known<Pick<Citation, 'quote' | 'place'>>({ quote, place }),
    }))
  })
}

/** What a part of the kind `source` names. */
export function sourcesIn(part: JsonObject | undefined): readonly Source[] {
  const [url, title] = [textAt(part, 'url'), textAt(part, 'title') ?? textAt(part, 'filename')]
  return url === undefined && title === undefined ? [] : [known<Source>({ url, title, fileId: undefined })]
}
