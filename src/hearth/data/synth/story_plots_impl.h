#pragma once
// Plots: what happens, step by step, with several ways to tell each step. A
// step's ways are interchangeable, so that any path through a plot makes sense.
//
//   $H the hero's name, $h he/she, $m him/her, $s his/her; $F $f $n $t the
//   friend's; $a what the hero is, $p place, $q another place,
//   $o object, $c its colour, $w weather, $y season, $g happy, $b sad,
//   $v said, $r relation, $E elder, $d animal, $x $z $i $j the plot's own
#include <span>
#include <string_view>

namespace hearth::data::synth {

using Step = std::span<const std::string_view>;

#define HEARTH_STEP(name) inline constexpr std::string_view name[]

HEARTH_STEP(kOpening) = {
    "Once upon a time there was $&a named $H.",
    "$H was $&a who lived near $p.",
    "There once was $&a. $^s name was $H.",
    "In a small house by $p lived $&a called $H.",
    "Everyone in the village knew $H, $&a.",
    "Long ago, near $p, there lived $&a named $H.",
};
HEARTH_STEP(kDay) = {
    "One $w morning in $y, $H went to $p with $F, $s $r.",
    "It was a $w day, so $H walked to $p with $s $r $F.",
    "One $w afternoon $H and $s $r $F were at $p.",
    "On a $w $y day, $h met $s $r $F near $p.",
    "Early one $w morning, $s $r $F knocked on the door and they ran to $p.",
};
HEARTH_STEP(kEnding) = {
    "That night $H fell asleep with a smile.",
    "From that day on, $H and $F were the best of friends.",
    "$^h never forgot that day.",
    "And they both laughed all the way home.",
    "At home $h told $s $E the whole story.",
    "The end.",
    "It had been a very good day.",
};

// Something is lost and found.
HEARTH_STEP(kLost1) = {
    "$H had $&c $o. $^h took it everywhere.",
    "More than anything, $h loved $s $c $o.",
    "For $s birthday $h had been given $&c $o by $s $E.",
};
HEARTH_STEP(kLost2) = {
    "When $h looked into $s bag, the $o was gone!",
    "But on the way home $h saw that the $o was missing.",
    "After playing, $h could not find the $o anywhere.",
};
HEARTH_STEP(kLost3) = {
    "\"Oh no! Where is my $o?\" cried $H. $^h felt very $b.",
    "$H was $b. \"I have lost my $o,\" $h said to $F.",
    "$H began to cry. \"Please help me look for my $o,\" $h asked.",
};
HEARTH_STEP(kLost4) = {
    "\"Do not worry,\" $v $F. \"Let us go back the way we came.\"",
    "\"Think about where you had it last,\" $v $F.",
    "$F took $s hand. \"We will look together,\" $f $v.",
};
HEARTH_STEP(kLost5) = {
    "They looked at $q, but it was not there. Then $F saw something $c $x.",
    "They searched for a long time. At last, $x, they saw a bit of $c.",
    "First they asked at $q. Then they looked $x, and there it lay.",
};
HEARTH_STEP(kLost6) = {
    "It was the $o! $H hugged $F. \"Thank you! You are a true friend.\"",
    "\"My $o!\" shouted $H. $^h was so $g that $h jumped up and down.",
    "$H held the $o tight and thanked $F again and again.",
};

// Two want the same thing.
HEARTH_STEP(kShare1) = {
    "At $p they found $&c $o.",
    "There was only one $c $o to play with.",
    "In the grass lay $&c $o that nobody owned.",
};
HEARTH_STEP(kShare2) = {
    "\"It is mine! I saw it first,\" said $H. \"No, it is mine!\" said $F.",
    "$H wanted it, and $F wanted it too. They both pulled at it.",
    "Both reached for the $o at once, and neither would let go.",
};
HEARTH_STEP(kShare3) = {
    "They pulled so hard that the $o fell into the mud.",
    "They shouted until $F began to cry.",
    "In the end nobody played at all, and both were $b.",
};
HEARTH_STEP(kShare4) = {
    "Then $s $E came by. \"What if you take turns?\" asked $s wise $E.",
    "$H thought for a while. \"We could share it,\" $h said in a small voice.",
    "$F wiped $t eyes. \"You can have it today, and I can have it tomorrow.\"",
};
HEARTH_STEP(kShare5) = {
    "So they took turns, and it was twice as much fun.",
    "They made a new game for two, and the $o was just right for it.",
    "First $H played, then $F, and soon they were both $g again.",
};
HEARTH_STEP(kShare6) = {
    "$H learned that sharing makes a good thing better.",
    "\"I like it more when we share,\" $v $H, and $F agreed.",
    "After that day they always shared what they found.",
};

// A fear is overcome.
HEARTH_STEP(kFear1) = {
    "But $H had a secret. $^h was afraid of $x.",
    "There was only one thing that $h did not like: $x.",
    "$^h tried to be brave, but $x made $m shake.",
};
HEARTH_STEP(kFear2) = {
    "One day $F asked $m to come along to $q, and $H had to say why $h could "
    "not.",
    "The others went ahead, and $H stayed behind and felt $b.",
    "\"Are you coming?\" asked $F. $H looked down at $s feet.",
};
HEARTH_STEP(kFear3) = {
    "\"I am afraid of $x,\" $h whispered.",
    "\"It is because of $x,\" $H said at last. \"I know it is silly.\"",
    "\"Promise not to laugh,\" said $H. \"I am scared of $x.\"",
};
HEARTH_STEP(kFear4) = {
    "$F did not laugh. \"I was afraid too, once,\" $f $v. \"I will stay with "
    "you.\"",
    "\"Everyone is afraid of something,\" $v $F. \"We can go slowly.\"",
    "$F held out a hand. \"Take a deep breath and count to three with me.\"",
};
HEARTH_STEP(kFear5) = {
    "They took one small step, then another. Nothing bad happened.",
    "$H counted: one, two, three. $^s heart beat fast, but $h did not run "
    "away.",
    "Slowly, holding on to $F, $h tried. It was not so bad after all.",
};
HEARTH_STEP(kFear6) = {
    "\"I did it!\" cried $H. $^h was very $g.",
    "From then on, $x seemed much smaller.",
    "$H still felt a little afraid, but now $h knew what to do.",
};

// Something is built, breaks and is built better.
HEARTH_STEP(kBuild1) = {
    "$H and $F wanted to build $&x.",
    "\"Let us build $&x!\" said $H, and $F clapped $t hands.",
    "They had a plan: $&x, the biggest anyone had seen.",
};
HEARTH_STEP(kBuild2) = {
    "They gathered $z and worked all morning.",
    "With $z they worked until the sun was high.",
    "$F carried the $z and $H put it all together.",
};
HEARTH_STEP(kBuild3) = {
    "It was almost done when $i.",
    "They stepped back to look at it. Just then $i.",
    "But as soon as they sat down to rest, $i.",
};
HEARTH_STEP(kBuild4) = {
    "$H was $b and wanted to give up. \"All that work for nothing,\" $h said.",
    "For a while nobody spoke. $H kicked a stone.",
    "\"It is ruined!\" cried $H.",
};
HEARTH_STEP(kBuild5) = {
    "\"Now we know what was wrong,\" $v $F. \"Let us make the bottom wider.\"",
    "\"We can fix it,\" $v $F. \"This time we will make it stronger.\"",
    "$F looked at it closely. \"It only needs a better start,\" $f $v.",
};
HEARTH_STEP(kBuild6) = {
    "So they tried again, and this time the $x stood firm.",
    "They worked together until evening, and the new $x was even better.",
    "The second $x held, and they were $g and tired.",
};

// An animal is helped and helps in return.
HEARTH_STEP(kHelp1) = {
    "Near $p $h heard a tiny sound. It was a little $x, caught in a net.",
    "Under a bush sat a small $x with a hurt leg.",
    "There, $j, $h found $&x that was cold and hungry.",
};
HEARTH_STEP(kHelp2) = {
    "\"You poor thing,\" said $H. $^h wrapped the $x in $s scarf.",
    "$H knelt down. \"Do not be afraid. I will help you,\" $h said softly.",
    "$^h ran to fetch $F. \"Come quickly! $^&x needs us!\"",
};
HEARTH_STEP(kHelp3) = {
    "$F brought warm milk, and $H gave it to the $x drop by drop.",
    "Every day they fed it, and every day the $x grew stronger.",
    "They made a bed in a box and kept watch all night.",
};
HEARTH_STEP(kHelp4) = {
    "Soon the $x was well, and they let it go at $q.",
    "When it could run again, the $x went back to $q.",
    "One morning the $x was strong enough to leave. $H waved goodbye.",
};
HEARTH_STEP(kHelp5) = {
    "Weeks later $H lost $s way in the fog. Then a small $x came and led $m "
    "home.",
    "Some time later $H dropped $s key in the grass, and the $x came and "
    "showed $m where it lay.",
    "In $y, when $H was feeling $b, the $x came back to visit.",
};
HEARTH_STEP(kHelp6) = {
    "\"You remembered me!\" said $H, and $h was $g.",
    "A kind deed always comes back.",
    "$H smiled. \"Now you have helped me too.\"",
};

// Something is broken and the truth is told.
HEARTH_STEP(kTruth1) = {
    "Back at home $H was throwing the $c $o inside the house, although $h knew "
    "that $h should not.",
    "Then it began to rain, so they went home and played with the $o in the "
    "living room.",
    "\"Watch how far I can throw this $o!\" said $H when they were back in the "
    "house.",
};
HEARTH_STEP(kTruth2) = {
    "The $o flew too high and hit the $x. Crash! It broke into pieces.",
    "There was a loud crash. The $x lay on the floor, broken.",
    "With a bang the $o knocked over the $x.",
};
HEARTH_STEP(kTruth3) = {
    "\"We could hide it,\" said $F. $H felt $b.",
    "\"Nobody saw us,\" whispered $F. But $H could not stop thinking about it.",
    "$H wanted to run away, but $s feet would not move.",
};
HEARTH_STEP(kTruth4) = {
    "When $s $E came in, $H took a deep breath. \"I broke the $x. I am "
    "sorry.\"",
    "$H went to $s $E and told the truth about the $x.",
    "\"It was my fault,\" $H told $s $E. \"I should not have played here.\"",
};
HEARTH_STEP(kTruth5) = {
    "$^s $E was quiet, then smiled. \"Thank you for telling me. That was "
    "brave.\"",
    "\"I am not happy about the $x,\" said $s $E, \"but I am glad you told "
    "me.\"",
    "\"Things can be mended,\" said $s $E. \"Trust is harder to mend.\"",
};
HEARTH_STEP(kTruth6) = {
    "Together they swept up the pieces and glued the $x.",
    "$H saved $s coins and helped to buy a new one.",
    "After that, $H only played with the $o outside.",
};

// A skill is learned.
HEARTH_STEP(kSkill1) = {
    "$H wanted to learn to $x.",
    "All of $s friends could $x, but $H could not.",
    "\"I wish I could $x,\" said $H.",
};
HEARTH_STEP(kSkill2) = {
    "The first time $h tried, it went wrong. $F could not help laughing.",
    "$^h tried once and failed. $^h tried twice and failed again.",
    "It looked easy when $F did it, but it was not.",
};
HEARTH_STEP(kSkill3) = {
    "\"I will never learn it,\" said $H. $^h felt $b.",
    "$H was ready to give up and went home early.",
    "That evening $h sat at the window and sighed.",
};
HEARTH_STEP(kSkill4) = {
    "\"Nobody can do it at first,\" $v $s $E. \"Try a little every day.\"",
    "$F came over. \"I needed a whole $y to learn it,\" $f $v.",
    "\"Show me what you do,\" $v $F, and they found the mistake.",
};
HEARTH_STEP(kSkill5) = {
    "So $H practised every day after breakfast, even when it was $w.",
    "Day after day $h went to $p and tried again.",
    "$^h practised on Monday, on Tuesday and all week long.",
};
HEARTH_STEP(kSkill6) = {
    "And then one day it worked! \"Look, I can $x!\" $h shouted.",
    "At the end of $y, $H could $x as well as anyone, and $h was $g.",
    "\"You did it!\" cried $F. $H could hardly believe it.",
};

// A plant grows.
HEARTH_STEP(kGrow1) = {
    "$^s $E gave $m a seed. \"If you take care of it, it will become $&x,\" "
    "said $s $E.",
    "$H found a seed in $s pocket. $F said that it was from $&x.",
    "In $y, $H planted a small seed in the garden. It was $&x seed.",
};
HEARTH_STEP(kGrow2) = {
    "$^h dug a hole, put the seed in and covered it with earth.",
    "$F held the watering can and $H patted the earth flat.",
    "They marked the place with $&c ribbon so that nobody would step on it.",
};
HEARTH_STEP(kGrow3) = {
    "The next day $h ran to look, but there was nothing to see.",
    "A week went by, and nothing happened. $H was $b.",
    "\"Why is it not growing?\" asked $H every morning.",
};
HEARTH_STEP(kGrow4) = {
    "\"Be patient,\" $v $F. \"Good things need time.\"",
    "\"Keep watering it,\" $v $s $E. \"It is busy under the ground.\"",
    "$F laughed. \"You cannot hurry $&x.\"",
};
HEARTH_STEP(kGrow5) = {
    "So $H watered it every day, and one morning there was a tiny green leaf.",
    "When it was dry, $H brought water. When it was cold, $h covered it with "
    "straw.",
    "$^h never forgot to water it. Then, after a $w night, a green tip came "
    "out of the earth.",
};
HEARTH_STEP(kGrow6) = {
    "By the end of summer the $x was taller than $H, and $h was very $g.",
    "It grew and grew, and in the end $H shared what it gave with $F.",
    "\"I grew it myself,\" $H said, and everyone came to see the $x.",
};

// A meal goes wrong and is saved.
HEARTH_STEP(kCook1) = {
    "$H wanted to make $x for $s $E.",
    "It was the birthday of $s $E, and $H decided to make $x.",
    "\"Let us surprise my $E with $x,\" said $H to $F.",
};
HEARTH_STEP(kCook2) = {
    "They washed their hands and took out everything they needed.",
    "$F read the recipe aloud, and $H measured with a spoon.",
    "They mixed and stirred until there was flour on $t nose.",
};
HEARTH_STEP(kCook3) = {
    "But $H took the salt instead of the sugar!",
    "Then they forgot to look at the clock, and smoke came out of the oven.",
    "\"Oops,\" said $F. The whole bowl had tipped over.",
};
HEARTH_STEP(kCook4) = {
    "They tasted it and made a face. $H felt $b.",
    "\"We cannot give that to anyone,\" said $H.",
    "$H looked at the mess and did not know what to do.",
};
HEARTH_STEP(kCook5) = {
    "\"There is enough for one more try,\" $v $F. So they began again, more "
    "slowly.",
    "\"Mistakes are how we learn,\" $v $F. They cleaned up and started over.",
    "$F found more of everything at the back of the shelf, and they tried once "
    "more.",
};
HEARTH_STEP(kCook6) = {
    "This time it was perfect. \"The best I have ever had!\" said $s $E.",
    "When $s $E came home, the table was set. Everyone was $g.",
    "$^s $E tasted it and gave them both a big hug.",
};

struct Plot {
  Step steps[6];
};

inline constexpr Plot kPlots[] = {
    {{kLost1, kLost2, kLost3, kLost4, kLost5, kLost6}},
    {{kShare1, kShare2, kShare3, kShare4, kShare5, kShare6}},
    {{kFear1, kFear2, kFear3, kFear4, kFear5, kFear6}},
    {{kBuild1, kBuild2, kBuild3, kBuild4, kBuild5, kBuild6}},
    {{kHelp1, kHelp2, kHelp3, kHelp4, kHelp5, kHelp6}},
    {{kTruth1, kTruth2, kTruth3, kTruth4, kTruth5, kTruth6}},
    {{kSkill1, kSkill2, kSkill3, kSkill4, kSkill5, kSkill6}},
    {{kGrow1, kGrow2, kGrow3, kGrow4, kGrow5, kGrow6}},
    {{kCook1, kCook2, kCook3, kCook4, kCook5, kCook6}},
};

// Small details that fit between any two steps.
HEARTH_STEP(kDetails) = {
    "A light wind was blowing from $q.",
    "Far away a bell rang.",
    "It was good to have $&r like $F on such a day.",
    "They could smell fresh bread from the bakery.",
    "Two ducks watched them and said nothing.",
    "It was the kind of day on which anything can happen.",
    "$H had put on $s favourite coat.",
    "A cloud shaped like $&d drifted by.",
    "$F hummed a little song.",
    "The leaves made a soft sound.",
};

#undef HEARTH_STEP

}  // namespace hearth::data::synth
