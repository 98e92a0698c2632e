const deltaRecord =
  // oxlint-disable-next-line no-control-regex -- JSON has none of them in a text
  /event: content_block_delta\ndata: \{"type":"content_block_delta","index":(?:0|[1-9]\d{0,8}),"delta":\{"type":"[a-z_]{1,40}","[a-z_]{1,40}":"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"\} *\}\n\n/y

/** Where a whole record of a delta that adds one text ends; -1 where none begins at the place. */
export function endOfDelta(text: string, from: number): number {
  deltaRecord.lastIndex = from
  return deltaRecord.test(text) ? deltaRecord.lastIndex : -1
}
