<?php

// Uses the package as a Laravel application does, with Debian's illuminate: php laravel.php KEY
declare(strict_types=1);

require __DIR__ . '/../example/autoload.php';
require __DIR__ . '/../example/shop.php';
foreach (['Support', 'Container', 'Config', 'Bus', 'Queue', 'Events'] as $part) {
    require_once "Illuminate/$part/autoload.php";
}

use Illuminate\Bus\Dispatcher;
use Illuminate\Config\Repository;
use Illuminate\Container\Container;
use Tallystick\Client;
use Tallystick\Laravel\AdvanceRun;
use Tallystick\Laravel\TallystickServiceProvider;
use Tallystick\Problem;

final class StockLevel
{
    public function __invoke(array $input, string $callId): string
    {
        return shopTools(getenv('SHOP'))['stock_level']($input, $callId);
    }
}

final class OrderGoods
{
    public function __invoke(array $input, string $callId): string
    {
        return shopTools(getenv('SHOP'))['order_goods']($input, $callId);
    }
}

$app = new Container();
$app->instance('config', new Repository(['services' => ['tallystick' => [
    'url' => getenv('BACK_OFFICE_URL'),
    'token' => getenv('BACK_OFFICE_TOKEN'),
    'tools' => ['stock_level' => StockLevel::class, 'order_goods' => OrderGoods::class],
]]]));
(new TallystickServiceProvider($app))->register();
$bus = new Dispatcher($app);
$client = $app->make(Client::class);
echo json_encode($client === $app->make(Client::class)), "\n";

// A controller starts a run, and a queue works it until a person is asked. The job travels as Laravel's queues serialise it.
$runId = $client->start('buyer', 'What is short? Order it.', $argv[1]);
$work = fn () => $bus->dispatchNow(unserialize(serialize(new AdvanceRun($runId))));
$work();
[$question] = $client->result($runId)->pendingApprovals;
echo $question->name, "\n";
$client->approve($runId, $question);
$work();
try {
    $client->deny($runId, $question, 'too late');
} catch (Problem $problem) {
    echo "$problem->status $problem->problemCode\n";
}
echo $client->result($runId)->text, "\n";
