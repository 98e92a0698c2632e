<?php

// Every command of the client, and its stream, against a server: php client.php KEY
declare(strict_types=1);

require __DIR__ . '/../example/autoload.php';

use GuzzleHttp\Psr7\HttpFactory;
use GuzzleHttp\Psr7\PumpStream;
use GuzzleHttp\Psr7\Utils;
use Tallystick\Client;
use Tallystick\EventStream;
use Tallystick\Problem;

$url = getenv('BACK_OFFICE_URL');
$token = getenv('BACK_OFFICE_TOKEN');
$client = Client::withGuzzle($url, $token);
$refused = function (callable $what): string {
    try {
        $what();
        return 'accepted';
    } catch (Problem $problem) {
        return "$problem->status $problem->problemCode";
    }
};

$runId = $client->start('buyer', 'What is short?', "$argv[1]-a", ['sessionId' => "$argv[1]-s", 'tags' => ['php']]);
$result = $client->result($runId);
[$first, $second] = $result->deferredCalls;
$early = str_replace('_1_1_', '_2_1_', $first->toolCallId);
foreach (['too early', 'and again'] as $when) {
    echo "settled $when: ", $refused(fn () => $client->settle($runId, $early, 'done')), "\n";
}
$client->settle($runId, $first->toolCallId, 'lamp: 3 pieces');
echo 'settled twice: ', $refused(fn () => $client->settle($runId, $first->toolCallId, 'lamp: 3 pieces')), "\n";
$client->fail($runId, $second->toolCallId, 'The warehouse is closed.');
$client->steer($runId, 'Be quick.', "$argv[1]-steer");
echo 'steered again: ', $refused(fn () => $client->steer($runId, 'Be quick.', "$argv[1]-steer")), "\n";
echo 'other words, same key: ', $refused(fn () => $client->steer($runId, 'Take your time.', "$argv[1]-steer")), "\n";
$client->queue($runId, 'Then say thanks.');
[$question] = $client->result($runId)->pendingApprovals;
echo 'resumed: ', $refused(fn () => $client->resume($runId)), "\n";
$standing = ['for' => 'session', 'expiresInMs' => 60000];
echo 'other input for later calls: ', $refused(fn () => $client->approve($runId, $question, ['article' => 'lamp', 'pieces' => 2], null, $standing)), "\n";
// The refused decision is not in the way of the next one.
$client->approve($runId, $question, ['article' => 'lamp', 'pieces' => 2], 'less', null);
[$order] = $client->result($runId)->deferredCalls;
echo json_encode($order->input), "\n";
$client->cancel($runId, 'Enough.');
$ended = $client->result($runId);
echo "$ended->status $ended->reason\n";
echo 'cancelled again: ', $refused(fn () => $client->cancel($runId)), "\n";
echo 'approved again: ', $refused(fn () => $client->approve($runId, $question)), "\n";
echo 'unknown run: ', $refused(fn () => $client->result('../runs')), "\n";

// A standing approval, a denial, and the end of the approval.
$other = $client->start('buyer', 'What is short?', "$argv[1]-b");
foreach ($client->result($other)->deferredCalls as $call) {
    $client->settle($other, $call->toolCallId, 'none');
}
[$question] = $client->result($other)->pendingApprovals;
$client->approve($other, $question, null, null, ['for' => 'session', 'expiresInMs' => 60000]);
$client->withdraw($other, $question->toolCallId, 'once is enough');
echo 'withdrawn twice: ', $refused(fn () => $client->withdraw($other, $question->toolCallId)), "\n";
$client->cancel($other);
$third = $client->start('buyer', 'What is short?', "$argv[1]-c");
foreach ($client->result($third)->deferredCalls as $call) {
    $client->settle($third, $call->toolCallId, 'none');
}
$client->deny($third, $client->result($third)->pendingApprovals[0], 'Not today.');
echo $client->result($third)->status, "\n";

// Pages, the stream, and the stream from the middle have the same events.
$factory = new HttpFactory();
$paging = new Client(new GuzzleHttp\Client(['timeout' => 60]), $factory, $factory, "$url/", $token);
$pages = iterator_to_array($paging->events($runId));
$streamed = iterator_to_array($client->events($runId));
$rest = iterator_to_array($client->events($runId, 10));
echo json_encode([$pages === $streamed, array_keys($streamed) === range(1, count($streamed)), $rest === array_slice($streamed, 10, null, true)]), "\n";

// However the bytes of a stream are cut.
$bytes = ": alive\n\ndata: {\"a\":1}\n\nid: 2\r\ndata: x\r\ndata: y\r\n\r\n\n\ndata\n\ndata: cut off";
$expected = ['{"a":1}', "x\ny", ''];
$sizes = [];
foreach ([1, 2, 3, 7, 8192] as $size) {
    $source = Utils::streamFor($bytes);
    $stream = new PumpStream(fn () => $source->eof() ? false : ($source->read($size) ?: false));
    $sizes[] = iterator_to_array(EventStream::read(new class ($stream, $size) implements Psr\Http\Message\StreamInterface {
        use GuzzleHttp\Psr7\StreamDecoratorTrait;

        public function __construct(private Psr\Http\Message\StreamInterface $stream, private int $size)
        {
        }

        public function read($length): string
        {
            return $this->stream->read(min($length, $this->size));
        }
    }), false) === $expected;
}
echo json_encode($sizes), "\n";
