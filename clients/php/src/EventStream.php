<?php

declare(strict_types=1);

namespace Tallystick;

use Generator;
use Psr\Http\Message\StreamInterface;
use RuntimeException;

/** Reads server-sent events, however the bytes are cut. */
final class EventStream
{
    private const MOST = 64 * 1024 * 1024;

    /**
     * Yields the data of each event. Comments and events without data are left out, as is an event that was cut off.
     *
     * @return Generator<int, string>
     */
    public static function read(StreamInterface $stream): Generator
    {
        $buffer = '';
        $from = 0;
        while (!$stream->eof()) {
            try {
                // PHP waits for as many bytes as are asked for, where it decodes a chunked body: for the first, then for those that are there.
                $piece = $stream->read(1);
                $more = (int) $stream->getMetadata('unread_bytes');
                if ($more > 0) {
                    $piece .= $stream->read($more);
                }
            } catch (RuntimeException $error) {
                throw new StreamBroken('The stream broke: ' . $error->getMessage(), 0, $error);
            }
            if ($piece === '' && ($stream->getMetadata('timed_out') ?? false)) {
                throw new StreamBroken('The stream was silent for too long.');
            }
            $buffer .= $piece;
            if (strlen($buffer) > self::MOST) {
                throw new StreamBroken('An event of the stream has more than 64 MB.');
            }
            // An end may begin in the piece before.
            while (preg_match('/\r\n\r\n|\n\n|\r\r/', $buffer, $end, PREG_OFFSET_CAPTURE, max(0, $from - 3)) === 1) {
                [$mark, $at] = $end[0];
                $data = self::dataOf(substr($buffer, 0, $at));
                $buffer = substr($buffer, $at + strlen($mark));
                $from = 0;
                if ($data !== null) {
                    yield $data;
                }
            }
            $from = strlen($buffer);
        }
    }

    private static function dataOf(string $event): ?string
    {
        $lines = [];
        foreach (preg_split('/\r\n|\n|\r/', $event) ?: [] as $line) {
            if (preg_match('/^data(?:: ?(.*))?$/s', $line, $found) === 1) {
                $lines[] = $found[1] ?? '';
            }
        }
        return $lines === [] ? null : implode("\n", $lines);
    }
}
