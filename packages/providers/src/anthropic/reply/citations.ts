import { isJsonObject } from '@tallystick/core/kit'
import type { Citation, Json, JsonObject, Source } from '@tallystick/core/vocabulary'
import { listAt, numberAt, objectAt, textAt } from '../../shared/json/json-reading.ts'
import { known } from '../../shared/reply/known-citations.ts'

/** What a block of text cites, in the words of the ledger. The block's own fields go back as they came. */
export function citationsIn(block: JsonObject): readonly Citation[] {
  const citations = listAt(block, 'citations').filter(isJsonObject).map(citationOf)
  return citations.filter((citation) => Object.keys(citation).length > 0)
}

function citationOf(citation: JsonObject): Citation {
  const [from, end] = [numberAt(citation, 'start_page_number'), numberAt(citation, 'end_page_number')]
  return known<Citation>({
    url: textAt(citation, 'url') ?? textAt(citation, 'source'),
    title: textAt(citation, 'title') ?? textAt(citation, 'document_title'),
    fileId: textAt(citation, 'file_id'),
    quote: textAt(citation, 'cited_text'),
    // The vendor does not count the last page in.
    pages: from === undefined || end === undefined ? undefined : { from, to: Math.max(from, end - 1) },
    place: undefined,
  })
}

/** What a search or a fetch of the vendor's found. */
export function sourcesIn(block: JsonObject): readonly Source[] {
  const { content } = block
  if (block['type'] === 'web_search_tool_result') return listAt(block, 'content').flatMap(sourceOf)
  if (block['type'] !== 'web_fetch_tool_result' || !isJsonObject(content)) return []
  const title = textAt(objectAt(content, 'content'), 'title')
  return sourceOf({ ...content, ...(title !== undefined && { title }) })
}

function sourceOf(found: Json): readonly Source[] {
  const url = textAt(found, 'url')
  return url === undefined ? [] : [known<Source>({ url, title: textAt(found, 'title'), fileId: undefined })]
}
